package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"
)

// service is a node or a router.
type service interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// part is one service of a process and its listener.
type part struct {
	name     string
	service  service
	listener net.Listener
}

// serveOne runs a process with one service: it listens, opens the service with the
// log and serves until a signal.
func serveOne(c *cli.Context, name, address string, drain time.Duration, open func(serverLog) (service, error)) error {
	log := openLog(c.App.ErrWriter)
	defer log.close()
	stop := signals(log)
	l, err := listen(address)
	if err != nil {
		return err
	}
	s, err := open(log)
	if err != nil {
		closeAll(l)
		return err
	}
	return serve(log.Logger, stop, drain, nil, part{name, s, l})
}

// signals returns a channel that receives the first SIGINT or SIGTERM. A second one
// ends the process at once, without waiting for the drain. It is called before
// anything listens, so that no signal reaches the default handler.
func signals(log serverLog) <-chan os.Signal {
	caught := make(chan os.Signal, 2)
	first := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		first <- <-caught
		again := <-caught
		log.Warn().Str("signal", again.String()).Msg("second signal: ending at once")
		log.close()
		os.Exit(exitFailed)
	}()
	return first
}

// serve runs the parts until a signal or until one of them fails, then shuts them
// down in the given order. Each finishes its requests; drain bounds all of them
// together. started, if not nil, runs once all parts are serving, and ends the
// process if it returns an error.
func serve(log zerolog.Logger, stop <-chan os.Signal, drain time.Duration, started func(context.Context) error, parts ...part) error {
	ended := make(chan error, len(parts))
	for _, p := range parts {
		go func() {
			if err := p.service.Serve(p.listener); err != nil {
				ended <- fmt.Errorf("%s stopped listening: %w", p.name, err)
				return
			}
			ended <- nil
		}()
		log.Info().Str("role", p.name).Str("addr", p.listener.Addr().String()).Str("version", version).Msg("listening")
	}
	ctx, cancel := context.WithCancel(context.Background())
	begun, settled := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(settled)
		if started != nil {
			begun <- started(ctx)
		}
	}()
	running, failure := wait(log, stop, begun, ended, len(parts))
	cancel()
	<-settled
	failure = errors.Join(failure, shutDown(log, drain, parts))
	for range running {
		<-ended
	}
	return failure
}

// wait blocks until it is time to shut down. It returns how many parts are still
// running, and the reason: nil for a signal.
func wait(log zerolog.Logger, stop <-chan os.Signal, begun, ended <-chan error, running int) (int, error) {
	for {
		select {
		case s := <-stop:
			log.Info().Str("signal", s.String()).Msg("draining; a second signal ends at once")
			return running, nil
		case err := <-begun:
			if err != nil {
				return running, err
			}
			begun = nil
		case err := <-ended:
			return running - 1, err
		}
	}
}

func shutDown(log zerolog.Logger, drain time.Duration, parts []part) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	var failure error
	for _, p := range parts {
		err := p.service.Shutdown(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			log.Warn().Str("role", p.name).Msg("requests were still running at the end of the drain and were cut off")
		case err != nil:
			failure = errors.Join(failure, fmt.Errorf("%s did not shut down cleanly: %w", p.name, err))
		}
	}
	if failure == nil {
		log.Info().Msg("stopped")
	}
	return failure
}

// listen opens an address. Its error names the address and the reason.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	reason := err
	var op *net.OpError
	if errors.As(err, &op) {
		reason = op.Err
		var call *os.SyscallError
		if errors.As(op.Err, &call) {
			reason = call.Err
		}
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", address, reason)
}

// closeAll closes what a failed start has opened.
func closeAll(closers ...io.Closer) {
	for _, c := range closers {
		c.Close() // nothing was written to it
	}
}
