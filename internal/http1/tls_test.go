package http1

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"
)

// certificate makes one for 127.0.0.1, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "test"},
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestConnectionsAreServedOverTLS(t *testing.T) {
	cert, pool := certificate(t)
	addr := start(t, &Server{Handler: anyStream, TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
	trusting := &tls.Config{RootCAs: pool}

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{"/large": "0123", "/chunks": "one ", "/raw": "raw"} {
		resp, err := client.Get("https://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body[:len(want)]) != want || resp.ProtoMajor != 1 {
			t.Errorf("%s: %s, %d bytes, %v", path, resp.Proto, len(body), err)
		}
	}

	u, err := Dial(context.Background(), new(net.Dialer).DialContext, addr, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for range 3 {
		if err := u.Send([]byte("GET /raw HTTP/1.1\r\nHost: a\r\n\r\n"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := u.ReadHead("GET", soon()); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := u.Message(1000, 0); !ok || err != nil || !u.Reusable() || !u.Fresh() {
			t.Errorf("%v, %v, reusable %v, fresh %v", ok, err, u.Reusable(), u.Fresh())
		}
	}

	plain := dial(t, addr)
	send(t, plain, again)
	if n, _ := io.Copy(io.Discard, plain); n > 100 {
		t.Errorf("plain HTTP to a TLS port got %d bytes", n)
	}
}
