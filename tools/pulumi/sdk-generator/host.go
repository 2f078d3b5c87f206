package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	codegenrpc "github.com/pulumi/pulumi/sdk/v3/proto/go/codegen"
)

// throughHost starts a language host for as long as it is used, and gives it the package as Pulumi's CLI would.
func throughHost(executable string, text []byte, use func(generate programGenerator) error) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	codegenrpc.RegisterLoaderServer(server, loader{text: text})
	go func() { _ = server.Serve(listener) }() // Stop ends it
	defer server.Stop()

	host := exec.Command(executable)
	host.Stderr = os.Stderr
	output, err := host.StdoutPipe()
	if err != nil {
		return err
	}
	if err := host.Start(); err != nil {
		return err
	}
	defer func() {
		_ = host.Process.Kill()
		_ = host.Wait() // it says only that the host was killed
	}()
	var port int
	if _, err := fmt.Fscanf(output, "%d\n", &port); err != nil {
		return fmt.Errorf("%s named no port: %w", executable, err)
	}
	connection, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := pulumirpc.NewLanguageRuntimeClient(connection)
	return use(func(text []byte, path string) (map[string][]byte, error) {
		answer, err := client.GenerateProgram(context.Background(), &pulumirpc.GenerateProgramRequest{
			Source:       map[string]string{path: string(text)},
			LoaderTarget: listener.Addr().String(),
			Strict:       true,
		})
		if err != nil {
			return nil, err
		}
		var faults []error
		for _, diagnostic := range answer.Diagnostics {
			faults = append(faults, errors.New(strings.Join([]string{diagnostic.Summary, diagnostic.Detail}, " ")))
		}
		return answer.Source, errors.Join(faults...)
	})
}

// loader answers the package of the programs, and refuses others.
type loader struct {
	codegenrpc.UnimplementedLoaderServer
	text []byte
}

func (l loader) GetSchema(_ context.Context, request *codegenrpc.GetSchemaRequest) (*codegenrpc.GetSchemaResponse, error) {
	if request.Package != "machines" {
		return nil, noOtherPackages{}.refuse(request.Package)
	}
	return &codegenrpc.GetSchemaResponse{Schema: l.text}, nil
}
