package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"fenec/client"
)

// open returns a client of a new tenant for an example.
func open() (c *client.Client, done func()) {
	dir, err := os.MkdirTemp("", "fenec-example-")
	if err != nil {
		log.Fatal(err)
	}
	url, stop, err := startTenant(dir)
	if err != nil {
		log.Fatal(err)
	}
	c = client.New(url, client.Options{})
	return c, func() {
		c.Close()
		stop()
		os.RemoveAll(dir)
	}
}

// must ends the process on an error.
func must(_ int, err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example() {
	c, done := open() // client.New("http://127.0.0.1:8081/t/acme", client.Options{})
	defer done()
	ctx := context.Background()

	type Book struct {
		ID    int64     `json:"id,omitzero"` // assigned by the tenant if zero
		Title string    `json:"title"`
		Added time.Time `json:"added"`
	}
	must(c.Exec(ctx, "create collection books (title text @unique, added timestamp @sorted)"))
	must(c.Exec(ctx, "insert into books $1", []Book{
		{Title: "Emma", Added: time.UnixMilli(0)},
		{Title: "Momo", Added: time.UnixMilli(86_400_000)},
	}))
	books, err := client.Query[Book](ctx, c, "get books where added > $1", time.UnixMilli(1000))
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range books {
		fmt.Println(b.ID, b.Title, b.Added.UTC())
	}
	// Output: 2 Momo 1970-01-02 00:00:00 +0000 UTC
}

func ExampleError() {
	c, done := open()
	defer done()
	ctx := context.Background()

	_, err := c.Exec(ctx, "get books\nwhere year <")
	var e *client.Error
	if errors.As(err, &e) {
		fmt.Println(e.Status, e.Line, e.Column, errors.Is(err, client.ErrInvalid))
	}
	_, err = c.Exec(ctx, "get books")
	fmt.Println(errors.Is(err, client.ErrNotFound))
	// Output:
	// 400 2 13 true
	// true
}

func ExampleClient_Run() {
	c, done := open()
	defer done()
	ctx := context.Background()
	must(c.Exec(ctx, "create collection accounts (name text @unique, balance int)"))
	must(c.Exec(ctx, "put accounts $1", []map[string]any{{"name": "ann", "balance": 10}, {"name": "bob", "balance": 0}}))

	var b client.Batch
	b.Add("set accounts {balance: balance - $1} where name = $2 and balance >= $1 require 1", 7, "ann")
	b.Add("set accounts {balance: balance + $1} where name = $2 require 1", 7, "bob")
	for range 2 {
		_, err := c.Run(ctx, &b)
		fmt.Println(err == nil, errors.Is(err, client.ErrRequire))
	}
	// Output:
	// true false
	// false true
}

// A row that may already exist is inserted, left alone or changed, in one statement that any number of clients may send.
func ExampleClient_Exec_ifAbsent() {
	c, done := open()
	defer done()
	ctx := context.Background()
	must(c.Exec(ctx, "create collection users (email text @unique, visits int)"))

	users := []map[string]any{{"email": "ann@example.com", "visits": 0}, {"email": "bob@example.com", "visits": 0}}
	for range 2 {
		inserted, err := c.Exec(ctx, "insert into users $1 if absent", users)
		fmt.Println(inserted, err)
	}
	type User struct {
		ID     int64 `json:"id"`
		Visits int   `json:"visits"`
	}
	const visit = "insert into users {email: $1, visits: 1} if absent else set {visits: visits + 1} returning id, visits"
	for _, email := range []string{"bob@example.com", "eve@example.com"} {
		user, err := client.One[User](ctx, c, visit, email)
		fmt.Println(user, err)
	}
	_, err := client.Query[User](ctx, c, "get users where visits = 1 require 3")
	fmt.Println(errors.Is(err, client.ErrRequire))
	// Output:
	// 2 <nil>
	// 0 <nil>
	// {2 1} <nil>
	// {3 1} <nil>
	// true
}

func ExampleClient_WithKey() {
	c, done := open()
	defer done()
	ctx := context.Background()
	must(c.Exec(ctx, "create collection orders (item text)"))

	order := c.WithKey("order-17")
	for range 3 { // a client that does not know whether it was sent before sends it again
		must(order.Exec(ctx, "put orders {item: $1}", "tea"))
	}
	orders, err := client.Query[map[string]any](ctx, c, "get orders")
	fmt.Println(len(orders), err)
	// Output: 1 <nil>
}

func ExampleClient_Read() {
	c, done := open()
	defer done()
	ctx := context.Background()
	must(c.Exec(ctx, "create collection notes (text text)"))
	must(c.Exec(ctx, "put notes {text: $1}", "read me"))

	// Any copy of the tenant that serves the read holds that note.
	notes, err := client.Query[map[string]any](ctx, c.Read(), "get notes")
	fmt.Println(notes, err)

	// In another process, or another request of the same user's:
	cookie := c.Position().String()
	p, err := client.ParsePosition(cookie)
	if err != nil {
		log.Fatal(err)
	}
	notes, err = client.Query[map[string]any](ctx, c.At(p).Read(), "get notes")
	fmt.Println(notes, err)
	// Output:
	// [map[id:1 text:read me]] <nil>
	// [map[id:1 text:read me]] <nil>
}

func ExampleClient_Changes() {
	c, done := open()
	defer done()
	ctx := context.Background()
	must(c.Exec(ctx, "create collection notes (text text)"))
	must(c.Exec(ctx, "put notes {text: 'a'}"))
	must(c.Exec(ctx, "del notes where id = 1"))

	var since client.Position // stored by the reader; the zero value is before all changes
	for change, err := range c.Changes(ctx, since, client.ChangeOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(change.Position.Seq, change.Op, change.Collection, change.ID)
		since = change.Position
	}
	// Output:
	// 1 create notes 0
	// 2 put notes 1
	// 3 del notes 1
}

func ExampleConsumer() {
	c, done := open()
	defer done()
	ctx := context.Background()
	must(c.Exec(ctx, "create collection notes (text text)"))

	search := c.Consumer("search")
	if _, err := search.Create(ctx); err != nil { // an existing consumer keeps its cursor
		log.Fatal(err)
	}
	must(c.Exec(ctx, "put notes {text: 'a'}"))
	page, err := search.Next(ctx, client.ChangeOptions{Wait: 30 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	for _, change := range page.Changes {
		fmt.Println(change.Op, string(change.Doc))
	}
	fmt.Println(search.Commit(ctx, page.Next))
	// Output:
	// put {"id":1,"text":"a"}
	// <nil>
}
