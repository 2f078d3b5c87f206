// The command `attack`: what a hostile program in a Machine tries. It prints how each attempt ended.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

func attack(args []string) {
	switch args[0] {
	case "threads":
		threads(number(args[1]))
	case "files":
		files(number(args[1]))
	case "privileges":
		privileges()
	case "connect":
		for _, address := range args[1:] {
			connect(address)
		}
	}
}

// threads starts threads, which count as processes. If one cannot be started, the program ends and says how many there were.
func threads(most int) {
	debug.SetMaxThreads(2 * most)
	for started := 0; started < most; started++ {
		begun := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(begun)
			select {}
		}()
		<-begun
	}
	fmt.Printf("started %d\n", most)
}

func files(most int) {
	for opened := 0; opened < most; opened++ {
		if _, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0); err != nil {
			fmt.Printf("opened %d: %v\n", opened, err)
			return
		}
	}
	fmt.Printf("opened %d\n", most)
}

func report(what string, err error) {
	if err == nil {
		fmt.Printf("%s: done\n", what)
	} else {
		fmt.Printf("%s: %v\n", what, err)
	}
}

func privileges() {
	_, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP)
	report("raw socket", err)
	_, err = syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0)
	report("packets of others", err)
	report("device", syscall.Mknod("/tmp/device", syscall.S_IFBLK|0o600, 8<<8))
	// Of another user, with the rights of root: as `sudo` and `su` are.
	program := "/tmp/who"
	text, err := os.ReadFile("/app")
	must(err)
	must(os.WriteFile(program, text, 0o755))
	must(os.Chmod(program, 0o755|os.ModeSetuid))
	command := exec.Command(program)
	command.Args = []string{"who"}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	out, err := command.CombinedOutput()
	fmt.Printf("setuid program: user %s%v\n", out, err)
	report("new root", syscall.Chroot("/tmp"))
}

func who() { fmt.Print(os.Geteuid(), " ") }

func connect(address string) {
	connection, err := net.DialTimeout("tcp", address, 20*time.Second)
	if err == nil {
		connection.Close()
	}
	report(address, err)
}

// usual does what the programs of common images do when they begin as root: they give a folder to another user, and become that user,
// which listens below port 1024 and gets a signal from its parent.
func usual() {
	folder := "/tmp/usual"
	must(os.Mkdir(folder, 0o700))
	must(os.Chown(folder, 999, 999))
	must(os.Chmod(folder, 0o750))
	must(os.WriteFile(filepath.Join(folder, "mark"), nil, 0o600))
	child := exec.Command("/bin/sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 999, Gid: 999}}
	must(child.Start())
	must(child.Process.Signal(syscall.SIGTERM))
	child.Wait()
	_, err := net.Listen("tcp", ":80")
	must(err)
	fmt.Println("works")
}
