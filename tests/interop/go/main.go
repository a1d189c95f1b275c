// Tests an SMB server with the go-smb2 client: go-client ADDRESS USER PASSWORD SHARE, on an empty
// share. At the first difference from the expected result, prints it and exits with 1.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"time"

	"github.com/cloudsoda/go-smb2"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: go-client ADDRESS USER PASSWORD SHARE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("all as expected")
}

func run(address, user, password, name string) error {
	within, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := refusesWrongPassword(within, address, user); err != nil {
		return err
	}
	dialer := smb2.Dialer{Initiator: &smb2.NTLMInitiator{User: user, Password: password}}
	session, err := dialer.Dial(within, address)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer session.Logoff()
	if err := session.Echo(); err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	share, err := session.Mount(name)
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	for _, step := range []struct {
		what string
		do   func(*smb2.Share) error
	}{
		{"files", files}, {"directories", directories}, {"renames", renames}, {"facts", facts}, {"absences", absences},
	} {
		if err := step.do(share); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	if err := share.Umount(); err != nil {
		return fmt.Errorf("umount: %w", err)
	}
	return nil
}

func refusesWrongPassword(within context.Context, address, user string) error {
	dialer := smb2.Dialer{Initiator: &smb2.NTLMInitiator{User: user, Password: "wrong"}}
	session, err := dialer.Dial(within, address)
	if err == nil {
		session.Logoff()
		return errors.New("a wrong password was accepted")
	}
	return nil
}

func content() []byte {
	return bytes.Repeat([]byte("sluice and its gates\n"), 150_000)
}

func files(share *smb2.Share) error {
	if err := share.WriteFile("file", content(), 0o644); err != nil {
		return err
	}
	read, err := share.ReadFile("file")
	if err != nil {
		return err
	}
	if !bytes.Equal(read, content()) {
		return fmt.Errorf("read %d bytes that are not the %d written", len(read), len(content()))
	}
	file, err := share.OpenFile("file", os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte("GATES"), 1_000_000); err != nil {
		return err
	}
	part := make([]byte, 5)
	if _, err := file.ReadAt(part, 1_000_000); err != nil {
		return err
	}
	if string(part) != "GATES" {
		return fmt.Errorf("read %q where GATES was written", part)
	}
	if err := file.Truncate(10); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	facts, err := file.Stat()
	if err != nil {
		return err
	}
	if facts.Size() != 10 {
		return fmt.Errorf("%d bytes after truncating to 10", facts.Size())
	}
	return nil
}

func directories(share *smb2.Share) error {
	if err := share.MkdirAll("one/two", 0o755); err != nil {
		return err
	}
	wanted := []string{}
	for number := range 500 {
		name := fmt.Sprintf("entry %03d ü", number)
		wanted = append(wanted, name)
		if err := share.WriteFile("one/two/"+name, []byte(name), 0o644); err != nil {
			return err
		}
	}
	entries, err := share.ReadDir("one/two")
	if err != nil {
		return err
	}
	listed := []string{}
	for _, entry := range entries {
		listed = append(listed, entry.Name())
	}
	sort.Strings(listed)
	if fmt.Sprint(listed) != fmt.Sprint(wanted) {
		return fmt.Errorf("listed %v", listed)
	}
	if err := share.Remove("one"); err == nil {
		return errors.New("a directory with entries was removed")
	}
	return share.RemoveAll("one")
}

func renames(share *smb2.Share) error {
	if err := share.WriteFile("old", []byte("old"), 0o644); err != nil {
		return err
	}
	if err := share.Rename("old", "new"); err != nil {
		return err
	}
	read, err := share.ReadFile("new")
	if err != nil {
		return err
	}
	if string(read) != "old" {
		return fmt.Errorf("the renamed file holds %q", read)
	}
	return share.Remove("new")
}

func facts(share *smb2.Share) error {
	if err := share.WriteFile("dated", []byte("12345"), 0o644); err != nil {
		return err
	}
	when := time.Unix(1_100_000_000, 0)
	if err := share.Chtimes("dated", when, when); err != nil {
		return err
	}
	seen, err := share.Stat("dated")
	if err != nil {
		return err
	}
	if !seen.ModTime().Equal(when) || seen.Size() != 5 || seen.IsDir() {
		return fmt.Errorf("%v, %d bytes, directory: %v", seen.ModTime(), seen.Size(), seen.IsDir())
	}
	volume, err := share.Statfs("")
	if err != nil {
		return err
	}
	if volume.TotalBlockCount() == 0 || volume.BlockSize() == 0 {
		return errors.New("the volume has no size")
	}
	return share.Remove("dated")
}

func absences(share *smb2.Share) error {
	if _, err := share.Stat("absent"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stat of a missing file: %v", err)
	}
	if _, err := share.ReadFile("absent/file"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a file in a missing directory: %v", err)
	}
	if _, err := share.OpenFile("file", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644); !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("exclusive creation of an existing file: %v", err)
	}
	return nil
}
