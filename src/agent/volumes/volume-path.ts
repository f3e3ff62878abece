/** Where a pod finds a volume. */
export interface VolumePath {
  /** A mount point, or a link to a device. */
  readonly path: string;
  readonly isBlock: boolean;
}
