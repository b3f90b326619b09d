package replication

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Protocol is the value of the Upgrade header of a request for a connection, `GET /_replication`.
const Protocol = "fenec-replication/1"

// HTTP reaches the nodes that copies follow, at addresses such as http://10.0.0.1:8081. Its methods may be called from any
// goroutine.
type HTTP struct {
	token  string
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	client http.Client
}

// NewHTTP returns an HTTP that presents a token, and dials with dial.
func NewHTTP(token string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *HTTP {
	return &HTTP{token: token, dial: dial, client: http.Client{Transport: &http.Transport{
		DialContext: dial, DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: imagePatience,
	}}}
}

// imagePatience is how long a node may take until it begins to send an image.
const imagePatience = 30 * time.Second

// ParseAddress checks an address of a node and returns it without a slash at its end.
func ParseAddress(addr string) (string, error) {
	u, err := url.Parse(addr)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("expected http://host:port or https://host:port, got %q", addr)
	}
	return u.Scheme + "://" + u.Host, nil
}

// Connect returns a connection on which frames are sent. Its error is an *Ended if the node has refused.
func (h *HTTP) Connect(ctx context.Context, addr string) (net.Conn, error) {
	u, err := url.Parse(addr)
	if err != nil {
		return nil, err
	}
	conn, err := h.dial(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	up, err := h.upgrade(conn, u)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return up, nil
}

// upgrade asks for frames on a new connection.
func (h *HTTP) upgrade(conn net.Conn, u *url.URL) (net.Conn, error) {
	req, err := http.NewRequest(http.MethodGet, u.String()+"/_replication", nil)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {Protocol}, "Authorization": {"Bearer " + h.token}}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 64<<10)
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		return nil, refusedBy(res)
	}
	return &upgraded{conn, r}, nil
}

// refusedBy returns the answer of a node that refuses as an error.
func refusedBy(res *http.Response) error {
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxSentence))
	switch res.StatusCode {
	case http.StatusUnauthorized:
		return &Ended{http.StatusUnauthorized, "the other node refuses the replication token"}
	case http.StatusServiceUnavailable:
		return errors.New("the other node has no room at the moment")
	}
	return &Ended{res.StatusCode, fmt.Sprintf("the other node answers %d: %s", res.StatusCode, text)}
}

// upgraded is a connection whose first bytes may have been read ahead.
type upgraded struct {
	net.Conn
	r *bufio.Reader
}

// Read implements net.Conn.
func (u *upgraded) Read(p []byte) (int, error) { return u.r.Read(p) }

// Image returns the image of a tenant.
func (h *HTTP) Image(ctx context.Context, addr, tenant string) (image io.ReadCloser, size int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, addr+"/t/"+tenant+"/_replication?image=1", nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	res, err := h.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, 0, refusedBy(res)
	}
	return res.Body, res.ContentLength, nil
}
