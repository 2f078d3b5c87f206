// The metadata with which the provider marks Machines. The console of the service shows them.

/** Tag with the name of the fleet that a Machine belongs to. */
export const fleetTag = "pulumi-fleet";
/** Tag with the phase of a Machine of a fleet. */
export const phaseTag = "pulumi-fleet-phase";
