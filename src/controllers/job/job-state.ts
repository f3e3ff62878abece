/** The state of one sync of a job, which its steps share. */
import type { Job, JobCondition, JobSpec, JobStatus } from "../../api/batch/job/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Expectations } from "../workload/expectations.ts";
import type { PodControl } from "../workload/pod-control.ts";
import type { Indexes } from "./completion-indexes.ts";
import type { FinalizerExpectations } from "./finalizer-expectations.ts";
import type { JobMetrics, SyncAction } from "./job-metrics.ts";
import type { BackoffRecord } from "./pod-backoff.ts";

/** Changes within this time are handled by one sync. */
export const BATCH_MS = 1000;

export interface JobSyncDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly recorder: EventRecorder;
  readonly podControl: PodControl;
  readonly expectations: Expectations;
  readonly finalizers: FinalizerExpectations;
  readonly metrics: JobMetrics;
  /** Failures by the key of the job; the controller removes finished jobs. */
  readonly backoffs: Map<string, BackoffRecord>;
  /** Keys of jobs with creations whose result is unknown. */
  readonly unconfirmed: Set<string>;
  /** Syncs the job again after the milliseconds. */
  readonly requeue: (key: string, milliseconds: number) => void;
  readonly signal: AbortSignal;
}

type Draft<T> = { -readonly [K in keyof T]: T[K] };

export interface JobSync {
  readonly key: string;
  /** The last state that the server returned. */
  job: Job;
  readonly spec: JobSpec;
  /** The next status. */
  status: Draft<JobStatus>;
  readonly pods: readonly Pod[];
  readonly active: readonly Pod[];
  /** UIDs of pods whose finalizer was removed before. */
  readonly removed: ReadonlySet<string>;
  succeeded: number;
  activeCount: number;
  ready: number;
  terminating: number;
  /** The reason why the job ends. */
  end: JobCondition | undefined;
  previousSucceededIndexes: Indexes;
  succeededIndexes: Indexes;
  /** Undefined without a back-off limit per index. */
  failedIndexes: Indexes | undefined;
  /** Failed pods by index that keep their finalizer until they are replaced: the next pod counts on from them. */
  replaceable: ReadonlyMap<number, Pod>;
  readonly backoff: BackoffRecord;
  /** What the sync has done, for the metrics. */
  action: SyncAction;
}
