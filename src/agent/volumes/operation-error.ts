/** Which step of providing a volume failed, as Kubernetes names it in events. */

export type VolumeEvent = "FailedMount" | "FailedMapVolume" | "FailedAttachVolume";

export class OperationError extends Error {
  override readonly name = "OperationError";
  /** `MountVolume.SetUp` */
  readonly operation: string;
  /** What the volume is called there, when that is not its name in the pod. */
  readonly volume: string;
  /** Undefined: it only waits for others, and nothing is said of it. */
  readonly event: VolumeEvent | undefined;

  constructor(operation: string, volume: string, event: VolumeEvent | undefined, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.operation = operation;
    this.volume = volume;
    this.event = event;
  }
}

export interface OperationContext {
  readonly volume: string;
  readonly event: VolumeEvent | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Runs one step; what fails says so. The signal's reason passes as it is. */
export async function runOperation<T>(name: string, { volume, event, signal }: OperationContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof OperationError ? error : new OperationError(name, volume, event, error);
  }
}
