// Apps, Machines and volumes of a Machines Control Service: small VMs that run container images, with their storage.
package machines
