package main

import (
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What the runner tells a program (see ../README.md), and how a program answers.

var (
	ports        = map[string]string{"direct": os.Getenv("DRIVER_SERVER_PORT"), "remora": os.Getenv("DRIVER_REMORA_PORT")}
	tables       = strings.Fields(os.Getenv("DRIVER_TABLES"))
	passedTables = strings.Fields(os.Getenv("DRIVER_PASSED_TABLES"))
	withTLS      = os.Getenv("DRIVER_TLS") == "on"
)

// How long reads are repeated until memory answers as many of them as it can.
const warmUp = 2 * time.Minute

// notThere says that the driver, or the run, has no such thing.
type notThere string

func (reason notThere) Error() string { return string(reason) }

// hits gives the number of statements that Remora has answered from memory.
func hits() int {
	page := must(http.Get("http://" + os.Getenv("DRIVER_ADMIN") + "/metrics"))
	defer page.Body.Close()
	for _, line := range strings.Split(string(must(io.ReadAll(page.Body))), "\n") {
		if number, found := strings.CutPrefix(line, "remora_hits_total "); found {
			return must(strconv.Atoi(number))
		}
	}
	panic("Remora's metrics have no remora_hits_total")
}

// hitsSince gives the hits since then, at most as many as expected; they are counted after their answers were sent.
func hitsSince(before, expected int) int {
	for range 10 {
		if hits()-before >= expected {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return min(hits()-before, expected)
}

// check runs one check and reports it in one line.
func check(name string, run func()) {
	if wanted := os.Args[1:]; len(wanted) > 0 && !slices.Contains(wanted, name) {
		return
	}
	defer func() {
		switch reason := recover().(type) {
		case nil:
			fmt.Println("ok", name)
		case notThere:
			fmt.Println("none", name, reason)
		default:
			text := strings.Join(strings.Fields(fmt.Sprint(reason)), " ")
			fmt.Println("FAIL", name, text[:min(len(text), 600)])
			if os.Getenv("DRIVER_TRACE") != "" {
				panic(reason)
			}
		}
	}()
	run()
}

func must[T any](value T, err error) T {
	expect(err == nil, err)
	return value
}

// largeLengths gives the lengths of the large values to read, in bytes.
func largeLengths() (lengths []int) {
	for _, word := range strings.Fields(os.Getenv("DRIVER_LARGE_LENGTHS")) {
		lengths = append(lengths, must(strconv.Atoi(word)))
	}
	expect(len(lengths) > 0, "no lengths")
	return lengths
}

func expect(condition bool, what any) {
	if !condition {
		panic(what)
	}
}

// same says where the two begin to differ.
func same(what, seen, expected string) {
	if seen == expected {
		return
	}
	at := 0
	for at < len(seen) && at < len(expected) && seen[at] == expected[at] {
		at++
	}
	window := func(text string) string { return text[max(0, at-40):min(len(text), at+120)] }
	panic(fmt.Sprintf("%s: through Remora …%q instead of …%q", what, window(seen), window(expected)))
}

// digest stands for a long value.
func digest(value []byte) string { return fmt.Sprintf("%d bytes %x", len(value), sha1.Sum(value)) }

// trusting gives a configuration of TLS that trusts one authority, whatever the server's name.
func trusting(file string) *tls.Config {
	roots := x509.NewCertPool()
	expect(roots.AppendCertsFromPEM(must(os.ReadFile(file))), "no certificate in "+file)
	verify := func(state tls.ConnectionState) error {
		options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, certificate := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(certificate)
		}
		_, err := state.PeerCertificates[0].Verify(options)
		return err
	}
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: verify}
}
