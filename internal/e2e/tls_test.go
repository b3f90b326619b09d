package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes a certificate for 127.0.0.1 and its key, and answers a
// client that trusts it.
func certificate(t *testing.T) (cert, key string, client *http.Client) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	dir := t.TempDir()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return writeFile(t, filepath.Join(dir, "cert.pem"), string(certPEM)),
		writeFile(t, filepath.Join(dir, "key.pem"), string(keyPEM)),
		&http.Client{Transport: transport, Timeout: patience}
}

func TestNodeAndRouterServeTLS(t *testing.T) {
	t.Parallel()
	cert, key, client := certificate(t)
	for _, p := range []*process{
		startNode(t, t.TempDir(), "--tls-cert", cert, "--tls-key", key),
		startRouter(t, filepath.Join(t.TempDir(), "shard.fenec"), "--tls-cert", cert, "--tls-key", key),
	} {
		url := "https://" + p.addr
		response, err := client.Get(url + "/_health")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 200 {
			t.Errorf("%s/_health answered %d", url, response.StatusCode)
		}
		if code, out := fenec(t, "ping", url); code != exitFailed || !strings.Contains(out, "certificate") {
			t.Errorf("ping of a certificate nobody signed: exit code %d, %s", code, out)
		}
		if code, out := fenec(t, "ping", "--insecure", url); code != 0 {
			t.Errorf("ping --insecure: exit code %d, %s", code, out)
		}
		p.stop()
	}
	code, out := fails(t, "node", "--dir", t.TempDir(), "--http", "127.0.0.1:0", "--tls-cert", key, "--tls-key", key)
	if code != exitFailed || strings.Count(out, "\n") != 1 {
		t.Errorf("a key for a certificate: exit code %d, %s", code, out)
	}
}
