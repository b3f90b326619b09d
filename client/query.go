package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Query runs a statement that returns rows: get, explain, and insert, set and del with returning.
func Query[T any](ctx context.Context, c *Client, statement string, params ...any) ([]T, error) {
	r, err := c.run(ctx, 0, statement, params)
	if err != nil {
		return nil, err
	}
	return Rows[T](r)
}

// One returns the first row of a statement, or ErrNoRow if there is none.
func One[T any](ctx context.Context, c *Client, statement string, params ...any) (T, error) {
	rows, err := Query[T](ctx, c, statement, params...)
	if err == nil && len(rows) == 0 {
		err = ErrNoRow
	}
	if err != nil {
		var none T
		return none, err
	}
	return rows[0], nil
}

// Exec runs a statement and returns the number of documents it wrote, 0 for a schema statement.
func (c *Client) Exec(ctx context.Context, statement string, params ...any) (affected int, err error) {
	r, err := c.run(ctx, 0, statement, params)
	if err != nil {
		return 0, err
	}
	return r.Affected()
}

// maxHold is the maximum time a server holds one request.
const maxHold = 30 * time.Second

// Claim runs a set or del with returning that waits at the server until it finds something to write, such as the next
// job of a queue:
//
//	jobs, err := client.Claim[Job](ctx, c, time.Minute,
//		"set jobs {run_at: now() + 30_000} where run_at <= now() order run_at limit 1 returning *")
//
// If nothing is found within wait, it returns no rows, or ErrRequire if the statement has a require that was not met. A
// claim whose response is lost has still claimed; under WithKeys it is sent again and returns the same rows. Under
// WithKey it is one request, which waits 30 s at most.
func Claim[T any](ctx context.Context, c *Client, wait time.Duration, statement string, params ...any) ([]T, error) {
	until := time.Now().Add(wait)
	for {
		left := max(0, time.Until(until))
		r, err := c.run(ctx, max(time.Millisecond, min(left, maxHold)), statement, params)
		over := left <= maxHold || c.key != ""
		switch {
		case errors.Is(err, ErrRequire) && !over:
			continue
		case err != nil:
			return nil, err
		}
		rows, err := Rows[T](r)
		if err != nil || len(rows) > 0 || over {
			return rows, err
		}
	}
}

// run sends one statement. hold is how long the server may hold a write that finds nothing.
func (c *Client) run(ctx context.Context, hold time.Duration, statement string, params []any) (Result, error) {
	body, err := appendStatement(nil, statement, params)
	if err != nil {
		return Result{}, err
	}
	r := request{method: http.MethodPost, path: "/query", body: body, reads: reads(statement), wait: hold}
	if hold > 0 {
		r.header = [][2]string{{"Fenec-Wait", strconv.FormatInt(hold.Milliseconds(), 10)}}
	}
	a, err := c.send(ctx, r)
	if err != nil {
		return Result{}, err
	}
	return Result{a.body}, nil
}

// Result is the result of one statement: rows, the number of documents written, or what it did to the schema.
type Result struct{ text jsontext.Value }

// Rows returns the rows of a result.
func Rows[T any](r Result) ([]T, error) {
	list, _, err := r.read()
	switch {
	case err != nil:
		return nil, err
	case list == nil:
		return nil, fmt.Errorf("the statement ran; expected rows, got %s", r.text)
	}
	var rows []T
	if err := json.Unmarshal(list, &rows, decoding); err != nil {
		return nil, fmt.Errorf("decode rows: %w", err)
	}
	return rows, nil
}

// Affected returns the number of documents a statement wrote, or the number of rows it returned.
func (r Result) Affected() (int, error) {
	list, affected, err := r.read()
	if err != nil || list == nil {
		return affected, err
	}
	rows, err := Rows[jsontext.Value](r)
	return len(rows), err
}

// read returns the list of rows, which is nil if the statement returned none, and the number of documents it wrote. A
// batch has each list in an object.
func (r Result) read() (list jsontext.Value, affected int, err error) {
	if r.text.Kind() == '[' {
		return r.text, 0, nil
	}
	var object struct {
		Rows     jsontext.Value `json:"rows"`
		Affected int            `json:"affected"`
	}
	if err := json.Unmarshal(r.text, &object); err != nil {
		return nil, 0, fmt.Errorf("invalid response to a statement: %w", err)
	}
	return object.Rows, object.Affected, nil
}
