package node

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"net/netip"
	"strings"
	"testing"

	"fenec/internal/http1"
)

func TestConfigIsValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		config Config
		listen string
		want   string // empty if the config is valid
	}{
		"a directory on loopback":                 {Config{Dir: "d"}, "127.0.0.1:8081", ""},
		"a file on loopback":                      {Config{File: "f"}, "localhost:8081", ""},
		"loopback of version 6":                   {Config{Dir: "d"}, "[::1]:8081", ""},
		"another address of the loopback network": {Config{Dir: "d"}, "127.8.9.10:8081", ""},
		"neither a directory nor a file":          {Config{}, "127.0.0.1:8081", "--dir"},
		"both a directory and a file":             {Config{Dir: "d", File: "f"}, "127.0.0.1:8081", "exclude"},
		"beyond loopback without a token":         {Config{Dir: "d"}, "10.0.0.1:8081", "--http-token"},
		"everywhere without a token":              {Config{Dir: "d"}, ":8081", "--http-token"},
		"everywhere by address without a token":   {Config{Dir: "d"}, "0.0.0.0:8081", "--http-token"},
		"a host's name without a token":           {Config{Dir: "d"}, "example.org:8081", "--http-token"},
		"everywhere with an admin token alone":    {Config{Dir: "d", AdminToken: "a"}, ":8081", "--http-token"},
		"everywhere with a token":                 {Config{Dir: "d", DataToken: "t"}, ":8081", ""},
		"everywhere on purpose":                   {Config{Dir: "d", Insecure: true}, ":8081", ""},
		"no address":                              {Config{Dir: "d"}, "8081", "host:port"},
		"a certificate without its key":           {Config{Dir: "d", TLSCert: "c"}, "127.0.0.1:1", "--tls-key"},
		"one token for everything":                {Config{Dir: "d", AdminToken: "t", DataToken: "t"}, "127.0.0.1:1", "same"},
		"a negative duration":                     {Config{Dir: "d", IdleClose: -1}, "127.0.0.1:1", "negative"},
		"a negative memory":                       {Config{Dir: "d", MaxMemory: -1}, "127.0.0.1:1", "negative"},
		"a negative number of streams":            {Config{Dir: "d", MaxStreams: -1}, "127.0.0.1:1", "negative"},
		"a negative number of changes":            {Config{Dir: "d", Changes: -1}, "127.0.0.1:1", "negative"},
		"a negative number of connections":        {Config{Dir: "d", MaxConnections: -1}, "127.0.0.1:1", "negative"},
		"a share of the whole file":               {Config{Dir: "d", CompactAt: 1}, "127.0.0.1:1", "--compact-at"},
		"a negative share":                        {Config{Dir: "d", CompactAt: -0.1}, "127.0.0.1:1", "--compact-at"},
		"a share that is not a number":            {Config{Dir: "d", CompactAt: math.NaN()}, "127.0.0.1:1", "--compact-at"},
		"nearly the whole file":                   {Config{Dir: "d", CompactAt: 0.999}, "127.0.0.1:1", ""},
		"a negative number of compactions":        {Config{Dir: "d", CompactWorkers: -1}, "127.0.0.1:1", "--compact-workers"},
		"loopback mapped into version 6":          {Config{Dir: "d"}, "[::ffff:127.0.0.1]:1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.config.Validate(tc.listen)
			if tc.want == "" {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want a line with %q", err, tc.want)
			}
		})
	}
}

func TestAClientAddressIsTrustedOnlyWithAValidMark(t *testing.T) {
	mark := func(token, address string) string {
		mac := hmac.New(sha256.New, []byte(token))
		mac.Write([]byte(address))
		return hex.EncodeToString(mac.Sum(nil))
	}
	n := &Node{config: Config{AdminToken: adminToken}}
	for name, tc := range map[string]struct{ header, want string }{
		"the right mark":                 {"9.8.7.6 " + mark(adminToken, "9.8.7.6"), "9.8.7.6"},
		"no header":                      {"", "10.0.0.1"},
		"no mark":                        {"9.8.7.6", "10.0.0.1"},
		"an empty mark":                  {"9.8.7.6 ", "10.0.0.1"},
		"a mark of another token":        {"9.8.7.6 " + mark("x", "9.8.7.6"), "10.0.0.1"},
		"a mark of another address":      {"9.8.7.6 " + mark(adminToken, "9.8.7.5"), "10.0.0.1"},
		"a mark that is not hexadecimal": {"9.8.7.6 zz", "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http1.Request{Remote: netip.MustParseAddrPort("10.0.0.1:5")}
			if tc.header != "" {
				r.Headers = []http1.Header{{Name: []byte("fenec-router"), Value: []byte(tc.header)}}
			}
			if got := n.client(r); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
