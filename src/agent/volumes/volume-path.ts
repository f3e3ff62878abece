/** The host path of a volume that is set up. */
export interface VolumePath {
  /** A mount point, or a link to a device. */
  readonly path: string;
  readonly isBlock: boolean;
  /** Whether the mount has the SELinux label of the pod's containers. */
  readonly isLabelled?: boolean;
}
