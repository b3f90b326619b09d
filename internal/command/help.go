package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

const helpWidth = 96

const appHelp = `fenec is a document database split by tenant. Each tenant is one file; a node
serves a directory of them over HTTP; a router records which node holds which and
moves them while clients write.

Start here:

  fenec up                     a router and two nodes in this terminal
  fenec help import            load a file of JSON lines or CSV
`

const appFooter = `
fenec help <command> describes a command. Every flag is also an environment
variable: --idle-close is FENEC_IDLE_CLOSE. In a container, FENEC_ROLE or
--role node|shard|standby picks the command.
`

// printHelp replaces the flag library's help: data is the app or a command.
func printHelp(w io.Writer, _ string, data any) {
	switch v := data.(type) {
	case *cli.App:
		printAppHelp(w, v)
	case *cli.Command:
		printCommandHelp(w, v)
	}
}

func printAppHelp(w io.Writer, app *cli.App) {
	fmt.Fprintf(w, "%s\nCommands:\n\n", appHelp)
	for _, c := range app.Commands {
		fmt.Fprintf(w, "  %-10s %s\n", c.Name, c.Usage)
	}
	fmt.Fprint(w, appFooter)
}

func printCommandHelp(w io.Writer, c *cli.Command) {
	fmt.Fprintf(w, "fenec %s: %s.\n\n", c.Name, lowerFirst(c.Usage))
	usage := "fenec " + c.Name
	if c.ArgsUsage != "" {
		usage += " " + c.ArgsUsage
	}
	if hasFlags(c) {
		usage += " [flags]"
	}
	fmt.Fprintf(w, "  %s\n", usage)
	if c.Description != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.Description))
	}
	if !hasFlags(c) {
		return
	}
	fmt.Fprint(w, "\nFlags:\n\n")
	width := 0
	for _, f := range c.Flags {
		width = max(width, len(flagHead(f)))
	}
	times := false
	for _, f := range c.Flags {
		if isHelp(f) {
			continue
		}
		times = times || strings.HasSuffix(flagHead(f), " TIME")
		lines := wrap(flagText(f), helpWidth-width-4)
		fmt.Fprintf(w, "  %-*s  %s\n", width, flagHead(f), lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(w, "  %-*s  %s\n", width, "", line)
		}
	}
	if times {
		fmt.Fprint(w, "\nA TIME is a number of seconds, or a duration such as 300ms, 90s or 5m.\n")
	}
}

func hasFlags(c *cli.Command) bool {
	for _, f := range c.Flags {
		if !isHelp(f) {
			return true
		}
	}
	return false
}

func isHelp(f cli.Flag) bool { return f.Names()[0] == "help" }

// flagHead is `--name VALUE`; the usage text names the value between backquotes.
func flagHead(f cli.Flag) string {
	head := "--" + f.Names()[0]
	if s, ok := f.(*cli.StringFlag); ok {
		head += " " + placeholder(s.Usage)
	}
	return head
}

func placeholder(usage string) string {
	if _, rest, ok := strings.Cut(usage, "`"); ok {
		if name, _, ok := strings.Cut(rest, "`"); ok {
			return name
		}
	}
	return "VALUE"
}

func flagText(f cli.Flag) string {
	switch f := f.(type) {
	case *cli.StringFlag:
		text := strings.ReplaceAll(f.Usage, "`", "")
		if f.Value != "" {
			text += " Default " + f.Value + "."
		}
		return text
	case *cli.BoolFlag:
		return f.Usage
	}
	return ""
}

// wrap breaks text into lines of at most width characters, at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
