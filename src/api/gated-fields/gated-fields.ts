/** Fields that a write drops while a gate is off. */
export interface GatedFields {
  /** The feature is on while all of these gates are. */
  readonly gates: readonly string[];
  /** From the object. */
  readonly paths: readonly string[];
  /** The stored object uses the feature when one of these is set; the paths themselves when absent. */
  readonly usedAt?: readonly string[];
  /** Alternatively, whether the stored object, or its pod spec, uses the feature. */
  readonly isUsed?: (previous: unknown) => boolean;
  /** What takes the place of a dropped value. */
  readonly replacement?: unknown;
  /** Removes objects that become empty. */
  readonly prunes?: true;
  /** Changes the object, or its pod spec, instead of dropping the paths. */
  readonly drop?: (next: unknown) => unknown;
}
