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

// Query runs a statement that answers rows: get, explain, and insert, set and del with returning.
func Query[T any](ctx context.Context, c *Client, statement string, params ...any) ([]T, error) {
	r, err := c.run(ctx, 0, statement, params)
	if err != nil {
		return nil, err
	}
	return Rows[T](r)
}

// One is the first row that a statement answers, ErrNoRow where it answers none.
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

// Exec runs a statement, and answers how many documents it wrote, 0 where it is of the schema.
func (c *Client) Exec(ctx context.Context, statement string, params ...any) (affected int, err error) {
	r, err := c.run(ctx, 0, statement, params)
	if err != nil {
		return 0, err
	}
	return r.Affected()
}

// maxHold is how long a server holds one request.
const maxHold = 30 * time.Second

// Claim runs a set or del, with returning, that waits at the server until it finds something to write, such as the next
// job of a queue:
//
//	jobs, err := client.Claim[Job](ctx, c, time.Minute,
//		"set jobs {run_at: now() + 30_000} where run_at <= now() order run_at limit 1 returning *")
//
// Where nothing came within wait, it answers no rows, or ErrRequire where the statement has a require that was not met.
// A claim whose answer is lost has claimed; under WithKeys it is sent again and answers the same rows. Under WithKey it is
// one request, which waits 30 s at most.
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

// run sends one statement; hold is how long the server may hold a write that finds nothing.
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

// Result is what one statement answered: rows, how many documents it wrote, or what it did to the schema.
type Result struct{ text jsontext.Value }

// Rows are those of a result.
func Rows[T any](r Result) ([]T, error) {
	if r.text.Kind() != '[' {
		return nil, fmt.Errorf("the statement ran, and answers %s in place of rows", r.text)
	}
	var rows []T
	if err := json.Unmarshal(r.text, &rows, decoding); err != nil {
		return nil, fmt.Errorf("the rows are others than was thought: %w", err)
	}
	return rows, nil
}

// Affected is how many documents a statement wrote, or how many rows it answers.
func (r Result) Affected() (int, error) {
	if r.text.Kind() == '[' {
		rows, err := Rows[jsontext.Value](r)
		return len(rows), err
	}
	var counted struct {
		Affected int `json:"affected"`
	}
	if err := json.Unmarshal(r.text, &counted); err != nil {
		return 0, fmt.Errorf("the answer is none of a statement: %w", err)
	}
	return counted.Affected, nil
}
