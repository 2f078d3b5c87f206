// A CSI driver for tests: each volume is a folder of this computer, and each snapshot is a copy of one. All drivers with the same
// folder have the same volumes, so a volume can be used on any node.
//
// Usage: disks SOCKET FOLDER [NODE REGISTRY]. With a node, the kubelet of the registry's folder uses it.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const name = "disks.tests"

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	folder string
	node   string
}

func main() {
	socket, folder := os.Args[1], os.Args[2]
	d := &driver{folder: folder}
	for _, kind := range []string{"volumes", "snapshots", "sizes"} {
		must(os.MkdirAll(filepath.Join(folder, kind), 0o755))
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	if len(os.Args) > 3 {
		d.node = os.Args[3]
		csi.RegisterNodeServer(server, d)
		go register(os.Args[4], socket)
	}
	listen(server, socket)
}

// register lets the kubelet know where the driver listens.
func register(registry, socket string) {
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, &registrar{socket: socket})
	listen(server, filepath.Join(registry, name+".sock"))
}

func listen(server *grpc.Server, socket string) {
	must(os.MkdirAll(filepath.Dir(socket), 0o755))
	listener, err := net.Listen("unix", socket)
	must(err)
	must(server.Serve(listener))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type registrar struct {
	registration.UnimplementedRegistrationServer
	socket string
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: name, Endpoint: r.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *registrar) NotifyRegistrationStatus(
	_ context.Context, got *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !got.PluginRegistered {
		fmt.Fprintln(os.Stderr, got.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: name, VendorVersion: "1.0.0"}, nil
}

func (d *driver) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
		}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d *driver) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	var all []*csi.ControllerServiceCapability
	for _, one := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	} {
		all = append(all, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: one}},
		})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: all}, nil
}

func (d *driver) at(kind, id string) string { return filepath.Join(d.folder, kind, filepath.Base(id)) }

// write makes a folder with the contents of another one, if there is one. It appears only when it is complete.
func (d *driver) write(kind, id, from string) error {
	target := d.at(kind, id)
	if _, err := os.Stat(target); err == nil {
		return nil // an answer was lost
	}
	temporary, err := os.MkdirTemp(d.folder, "incomplete-")
	if err != nil {
		return err
	}
	if from != "" {
		if output, err := exec.Command("cp", "--archive", from+"/.", temporary).CombinedOutput(); err != nil {
			return status.Errorf(codes.Internal, "%s: %s", err, output)
		}
	}
	if err := os.Chmod(temporary, 0o777); err != nil {
		return err
	}
	return os.Rename(temporary, target)
}

// resize notes how large a volume is. Folders have no limit.
func (d *driver) resize(id string, asked *csi.CapacityRange) error {
	return os.WriteFile(d.at("sizes", id), []byte(strconv.FormatInt(asked.GetRequiredBytes(), 10)), 0o644)
}

func (d *driver) CreateVolume(_ context.Context, asked *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := d.resize(asked.Name, asked.CapacityRange); err != nil {
		return nil, err
	}
	from := ""
	if snapshot := asked.GetVolumeContentSource().GetSnapshot(); snapshot != nil {
		from = d.at("snapshots", snapshot.SnapshotId)
	}
	if err := d.write("volumes", asked.Name, from); err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: asked.Name, CapacityBytes: asked.GetCapacityRange().GetRequiredBytes(), ContentSource: asked.VolumeContentSource,
	}}, nil
}

func (d *driver) DeleteVolume(_ context.Context, asked *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, os.RemoveAll(d.at("volumes", asked.VolumeId))
}

func (d *driver) ControllerExpandVolume(
	_ context.Context, asked *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	bytes := asked.GetCapacityRange().GetRequiredBytes()
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: bytes}, d.resize(asked.VolumeId, asked.CapacityRange)
}

func (d *driver) CreateSnapshot(
	_ context.Context, asked *csi.CreateSnapshotRequest,
) (*csi.CreateSnapshotResponse, error) {
	if err := d.write("snapshots", asked.Name, d.at("volumes", asked.SourceVolumeId)); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(d.at("sizes", asked.SourceVolumeId))
	if err != nil {
		return nil, err
	}
	size, err := strconv.ParseInt(string(text), 10, 64)
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: asked.Name, SourceVolumeId: asked.SourceVolumeId, SizeBytes: size,
		CreationTime: timestamppb.Now(), ReadyToUse: true,
	}}, err
}

func (d *driver) DeleteSnapshot(
	_ context.Context, asked *csi.DeleteSnapshotRequest,
) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, os.RemoveAll(d.at("snapshots", asked.SnapshotId))
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *driver) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(
	_ context.Context, asked *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	if err := os.MkdirAll(asked.TargetPath, 0o755); err != nil {
		return nil, err
	}
	if exec.Command("mountpoint", "--quiet", asked.TargetPath).Run() == nil {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	output, err := exec.Command("mount", "--bind", d.at("volumes", asked.VolumeId), asked.TargetPath).CombinedOutput()
	if err != nil {
		return nil, status.Errorf(codes.Internal, "%s: %s", err, output)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (d *driver) NodeUnpublishVolume(
	_ context.Context, asked *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	if exec.Command("mountpoint", "--quiet", asked.TargetPath).Run() == nil {
		if output, err := exec.Command("umount", asked.TargetPath).CombinedOutput(); err != nil {
			return nil, status.Errorf(codes.Internal, "%s: %s", err, output)
		}
	}
	if err := os.Remove(asked.TargetPath); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
