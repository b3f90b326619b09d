package command

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"fenec/client"
)

const pingHelp = `
Requests /_health and exits with 0 if the response is 200, otherwise with 1. Meant for
the health check of a container without curl:

  HEALTHCHECK CMD ["/fenec", "ping", "http://127.0.0.1:8081"]
`

func pingCommand() *cli.Command {
	return &cli.Command{
		Name:        "ping",
		Usage:       "Check the health of a node or router",
		ArgsUsage:   "URL",
		Description: pingHelp,
		Flags: []cli.Flag{
			value("timeout", "5", "Give up after this `TIME`."),
			boolean("insecure", "Accept any certificate from an https URL."),
		},
		Action: ping,
	}
}

func ping(c *cli.Context) error {
	s := settings{c: c}
	timeout := s.wait("timeout")
	if s.err != nil {
		return s.err
	}
	if c.Args().Len() != 1 {
		return usagef("fenec ping: expected one URL, such as http://127.0.0.1:8081")
	}
	target, err := httpURL(c.Args().First())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: s.boolean("insecure")}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.Scheme+"://"+target.Host+"/_health", nil)
	if err != nil {
		return usagef("invalid URL %s: %s", target, err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("%s does not respond: %s", target.Host, client.Reason(err))
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 4096)) // only for the message
	if response.StatusCode != http.StatusOK {
		reason := strings.TrimSpace(string(body))
		if reason != "" {
			reason = ": " + reason
		}
		return fmt.Errorf("%s responded with %d%s", target.Host, response.StatusCode, reason)
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s is well\n", target.Host)
	return err
}

// httpURL parses an absolute http or https URL.
func httpURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, usagef("invalid URL %q: expected one such as http://127.0.0.1:8090", text)
	}
	return u, nil
}
