// Package command is the command line of fenec: subcommands, flags, signals and exit
// codes. It owns the goroutines that listen (serve.go) and waits for them before a
// command returns. No other package depends on how fenec is started.
package command

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// version is what `fenec version` and GET / return. Main sets it.
var version string

// Exit codes. They distinguish a failure from wrong usage.
const (
	exitOK     = 0
	exitFailed = 1 // failure: a port in use, a directory locked, a damaged file
	exitUsage  = 2 // invalid flag, argument or configuration: nothing was opened
)

// Main runs fenec of that version with the given arguments, of which the first is the
// program, and streams. It returns the exit code.
func Main(v string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	version = v
	unsetEmpty()
	return run(args, stdin, stdout, stderr)
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := newApp(stdin, stdout, stderr)
	args, err := arrange(app, args, os.Getenv("FENEC_ROLE"))
	if err == nil {
		err = app.Run(args)
	}
	if err == nil {
		return exitOK
	}
	// A message is one line.
	lastWords(stderr, "fenec: "+strings.Join(strings.Fields(err.Error()), " ")+"\n")
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	cli.HelpPrinter = printHelp
	cli.HelpFlag = &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "Show this help.", DisableDefaultText: true}
	app := &cli.App{
		Name:            "fenec",
		Usage:           "a document database split by tenant",
		Flags:           []cli.Flag{cli.HelpFlag},
		HideHelpCommand: true,
		HideVersion:     true,
		Reader:          stdin,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {}, // run decides
		OnUsageError:    onUsageError,
		Action:          withoutCommand,
		Commands: []*cli.Command{
			upCommand(), nodeCommand(), shardCommand(), standbyCommand(),
			importCommand(), tailCommand(), checkCommand(), pingCommand(), versionCommand(), helpCommand(),
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError = onUsageError
		c.HideHelpCommand = true
	}
	return app
}

// withoutCommand prints the help for `fenec` alone, and fails for an unknown
// command.
func withoutCommand(c *cli.Context) error {
	name := c.Args().First()
	if name == "" {
		return cli.ShowAppHelp(c)
	}
	return usagef("unknown command %q; fenec help lists the commands", name)
}

func helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "Describe fenec, or one of its commands",
		ArgsUsage: "[command]",
		Action: func(c *cli.Context) error {
			name := c.Args().First()
			if name == "" {
				return cli.ShowAppHelp(c)
			}
			command := c.App.Command(name)
			if command == nil {
				return usagef("unknown command %q; fenec help lists the commands", name)
			}
			printHelp(c.App.Writer, "", command)
			return nil
		},
	}
}

// roles are the commands that --role and FENEC_ROLE may name.
var roles = []string{"node", "shard", "standby"}

// arrange converts the arguments into the form that the flag parser reads: the role
// from --role or FENEC_ROLE becomes the command, and flags come before other
// arguments.
func arrange(app *cli.App, args []string, role string) ([]string, error) {
	program, args := args[0], args[1:]
	from := "FENEC_ROLE"
	if len(args) > 0 {
		if value, ok := strings.CutPrefix(args[0], "--role="); ok {
			role, from, args = value, "--role", args[1:]
		} else if args[0] == "--role" {
			if len(args) == 1 {
				return nil, usagef("--role: expected one of %s", strings.Join(roles, ", "))
			}
			role, from, args = args[1], "--role", args[2:]
		}
	}
	named := len(args) > 0 && !strings.HasPrefix(args[0], "-")
	asksHelp := len(args) == 1 && (args[0] == "--help" || args[0] == "-h")
	switch {
	case from == "--role" && !slices.Contains(roles, role):
		return nil, usagef("--role: expected one of %s, got %q", strings.Join(roles, ", "), role)
	case from == "--role" && named && args[0] != role:
		return nil, usagef("--role %s conflicts with the command %q; give one of the two", role, args[0])
	case !named && role != "" && !asksHelp:
		if !slices.Contains(roles, role) {
			return nil, usagef("%s: expected one of %s, got %q", from, strings.Join(roles, ", "), role)
		}
		args = append([]string{role}, args...)
	}
	if len(args) > 0 {
		if command := app.Command(args[0]); command != nil {
			args = append([]string{args[0]}, flagsFirst(command, args[1:])...)
		}
	}
	return append([]string{program}, args...), nil
}

// flagsFirst moves a command's flags, with their values, before its other
// arguments, since the parser stops at the first of those.
func flagsFirst(command *cli.Command, args []string) []string {
	takesValue := make(map[string]bool)
	for _, f := range command.Flags {
		_, isSwitch := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			takesValue[name] = !isSwitch
		}
	}
	var flags, rest []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			rest = append(rest, args...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest = append(rest, arg)
			continue
		}
		flags = append(flags, arg)
		name := strings.TrimLeft(arg, "-")
		if takesValue[name] && len(args) > 0 {
			flags = append(flags, args[0])
			args = args[1:]
		}
	}
	if len(rest) > 0 {
		flags = append(flags, "--")
	}
	return append(flags, rest...)
}
