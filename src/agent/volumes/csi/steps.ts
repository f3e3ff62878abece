/** The steps of providing a CSI volume, with their names in events. */
import type { VolumeEvent } from "../operation-error.ts";

interface CsiStep {
  readonly name: string;
  readonly event: VolumeEvent;
  readonly prefix: string;
}

export const SETUP: CsiStep = {
  name: "MountVolume.SetUp",
  event: "FailedMount",
  prefix: "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: ",
};
export const MOUNT_DEVICE: CsiStep = {
  name: "MountVolume.MountDevice",
  event: "FailedMount",
  prefix: "kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: ",
};
export const MAP_DEVICE: CsiStep = {
  name: "MapVolume.SetUpDevice",
  event: "FailedMapVolume",
  prefix: "kubernetes.io/csi: blockMapper.SetUpDevice failed to get CSI client: ",
};
export const MAP_POD_DEVICE: CsiStep = {
  name: "MapVolume.MapPodDevice",
  event: "FailedMapVolume",
  prefix: "kubernetes.io/csi: blockMapper.MapPodDevice failed to get CSI client: ",
};
