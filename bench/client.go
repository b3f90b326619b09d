package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
)

// client is one kept-alive connection, so plain that little of what is measured is its own.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	out  bytes.Buffer
}

func dial(port int) (*client, error) {
	conn, err := net.Dial("tcp", address(port))
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *client) close() { c.conn.Close() }

// post sends a POST and answers the body of the answer, which has to be a 2xx.
func (c *client) post(target, body string, headers ...string) ([]byte, error) {
	return c.do("POST", target, body, headers...)
}

func (c *client) do(method, target, body string, headers ...string) ([]byte, error) {
	if err := c.send(method, target, body, headers...); err != nil {
		return nil, err
	}
	return c.answer()
}

// send sends a request and waits for no answer.
func (c *client) send(method, target, body string, headers ...string) error {
	c.out.Reset()
	fmt.Fprintf(&c.out, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", method, target, len(body))
	for _, h := range headers {
		c.out.WriteString(h + "\r\n")
	}
	c.out.WriteString("\r\n" + body)
	_, err := c.conn.Write(c.out.Bytes())
	return err
}

// answer reads one with a Content-Length.
func (c *client) answer() ([]byte, error) {
	head := textproto.NewReader(c.in)
	status, err := head.ReadLine()
	if err != nil {
		return nil, err
	}
	length := 0
	for {
		line, err := head.ReadLine()
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(value); err != nil {
				return nil, err
			}
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(status, "HTTP/1.1 2") {
		return nil, fmt.Errorf("%s: %s", status, body)
	}
	return body, nil
}
