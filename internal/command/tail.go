package command

import (
	"context"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"fenec/internal/tail"
)

const tailHelp = `
Prints each change of a tenant once it is on disk: documents put and deleted,
collections created, altered and dropped. On a terminal it prints readable lines, in
a pipe the JSON lines of /_changes:

  fenec tail http://127.0.0.1:8090/t/acme
  fenec tail http://127.0.0.1:8090/t/acme --since 0 | jq -c 'select(.op == "del")'

It starts with the next change; --since N starts after change N, and --since 0 with
the first one. When it ends it prints the --since to continue with. With --consumer
the tenant stores the cursor and moves it after each printed page. If it is stopped
and started again it misses no change, and may print the last ones twice.

It continues through restarts of the node and moves of the tenant.
`

func tailCommand() *cli.Command {
	flags := []cli.Flag{
		value("since", "", "Start after this `CHANGE`. Default: the last change now."),
		value("consumer", "", "Start at the cursor of the consumer of this `NAME`, created if needed, and move it."),
		boolean("once", "End after the last change instead of waiting for more."),
		value("format", "", "`FORMAT` of the output: text or ndjson. Default: text on a terminal, ndjson otherwise."),
		value("retry", "60", "Retry for this `TIME` while the node is unavailable."),
	}
	flags = append(flags, secret("token", "The data `TOKEN` of the tenant's node.")...)
	return &cli.Command{
		Name:        "tail",
		Usage:       "Print a tenant's changes as they land",
		ArgsUsage:   "URL",
		Description: tailHelp,
		Flags:       flags,
		Action:      runTail,
	}
}

func tailOptions(c *cli.Context) (tail.Options, error) {
	s := settings{c: c}
	o := tail.Options{Out: c.App.Writer, Consumer: s.text("consumer"), Once: s.boolean("once")}
	token, patience := s.secret("token"), s.duration("retry")
	if s.err != nil {
		return o, s.err
	}
	if text := s.text("since"); text != "" {
		since, err := strconv.ParseUint(text, 10, 63)
		if err != nil || text[0] == '+' {
			return o, usagef("--since: expected the number of a change, got %q", text)
		}
		o.Since, o.From = since, true
	}
	switch s.text("format") {
	case "":
		o.Text = isTerminal(c.App.Writer)
	case "text":
		o.Text = true
	case "ndjson":
	default:
		return o, usagef("--format: expected text or ndjson, got %q", s.text("format"))
	}
	if c.Args().Len() != 1 {
		return o, usagef("fenec tail: expected one URL of a tenant, such as http://127.0.0.1:8090/t/acme")
	}
	if _, err := httpURL(c.Args().First()); err != nil {
		return o, err
	}
	o.Client = newClient(c.Args().First(), token, patience)
	return o, nil
}

func runTail(c *cli.Context) error {
	o, err := tailOptions(c)
	if err != nil {
		return err
	}
	defer o.Client.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	release := onInterrupt(stop)
	defer release()
	next, known, err := tail.Run(ctx, o)
	if known && o.Consumer == "" {
		fmt.Fprintf(c.App.ErrWriter, "continue with --since %d\n", next)
	}
	return err
}
