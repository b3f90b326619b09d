package edge

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
)

// IsLoopback reports whether an address to listen on is reachable only from this machine. A name other than localhost counts
// as reachable from elsewhere, and so does an address without a host, which listens everywhere.
func IsLoopback(listen string) (bool, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, fmt.Errorf("%q is not an address to listen on: expected host:port", listen)
	}
	if host == "localhost" {
		return true, nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback(), nil
}

// LoadTLS returns the configuration of a listener with a certificate and its key, both in PEM files. nil without them.
func LoadTLS(cert, key string) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			return nil, fmt.Errorf("cannot read %s: %s", path.Path, path.Err)
		}
		return nil, fmt.Errorf("%s and %s are not a certificate and its key: %s", cert, key, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}
