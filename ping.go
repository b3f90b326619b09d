package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"fenec/internal/api"
)

const pingHelp = `
Asks /_health and exits 0 where it answers 200, 1 where it does not. Meant for a
container's health check, where there is no curl:

  HEALTHCHECK CMD ["/fenec", "ping", "http://127.0.0.1:8081"]
`

func pingCommand() *cli.Command {
	return &cli.Command{
		Name:        "ping",
		Usage:       "Ask a node or router whether it is well",
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
		return usagef("fenec ping wants one URL, such as http://127.0.0.1:8081")
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
		return usagef("%s is no URL: %s", target, err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("%s does not answer: %s", target.Host, api.Reason(err))
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 4096)) // only for the message
	if response.StatusCode != http.StatusOK {
		said := strings.TrimSpace(string(body))
		if said != "" {
			said = ": " + said
		}
		return fmt.Errorf("%s answers %d%s", target.Host, response.StatusCode, said)
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s is well\n", target.Host)
	return err
}

// httpURL reads an absolute http or https URL.
func httpURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, usagef("%q is no URL; one looks like http://127.0.0.1:8090", text)
	}
	return u, nil
}
