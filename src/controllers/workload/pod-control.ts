/** Creation and deletion of pods for a controller, with events about it. */
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodTemplateSpec } from "../../api/core/pod-template/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import { sharedSlice } from "../../std/async/time-slice.ts";
import type { Clock } from "../../std/time/clock.ts";
import { statusCodeOf } from "../api-errors.ts";
import { controllerReference, objectReference } from "./object-keys.ts";

/** The maximum length of a pod's name. */
const NAME_MAX = 253;

export interface PodControl {
  /** Resolves without a pod if the namespace is being deleted. The names of pods begin with that of the owner. */
  create(template: PodTemplateSpec, owner: ApiObject, signal: AbortSignal, generateName?: string): Promise<void>;
  delete(pod: Pod, owner: ApiObject, signal: AbortSignal): Promise<void>;
}

/** Pods are created and deleted in batches, of which each request takes some of the turn in which it begins. */
export function createPodControl(client: Client, recorder: EventRecorder, clock: Clock): PodControl {
  return {
    async create(template, owner, signal, generateName) {
      const turn = sharedSlice.yield(clock);
      if (turn !== undefined) await turn;
      try {
        const { metadata } = await client.create(podKind, podFromTemplate(template, owner, generateName), signal);
        recorder.record(objectReference(owner), "Normal", "SuccessfulCreate", `Created pod: ${metadata?.name}`);
      } catch (error) {
        if (isNamespaceTerminating(error)) return;
        if (!signal.aborted) {
          recorder.record(objectReference(owner), "Warning", "FailedCreate", `Error creating: ${messageOf(error)}`);
        }
        throw error;
      }
    },
    async delete({ metadata }, owner, signal) {
      const { name = "", namespace } = metadata ?? {};
      const turn = sharedSlice.yield(clock);
      if (turn !== undefined) await turn;
      try {
        await client.delete(podKind, { name, namespace }, {}, signal);
        recorder.record(objectReference(owner), "Normal", "SuccessfulDelete", `Deleted pod: ${name}`);
      } catch (error) {
        if (statusCodeOf(error) !== 404 && !signal.aborted) {
          recorder.record(objectReference(owner), "Warning", "FailedDelete", `Error deleting: ${messageOf(error)}`);
        }
        throw error;
      }
    },
  };
}

export function isNamespaceTerminating(error: unknown): boolean {
  if (!(error instanceof StatusError)) return false;
  return error.status.details?.causes?.some(({ reason }) => reason === "NamespaceTerminating") === true;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function podFromTemplate({ metadata, spec }: PodTemplateSpec, owner: ApiObject, prefix: string | undefined): Pod {
  const { name = "", namespace } = owner.metadata ?? {};
  const { labels, annotations, finalizers } = metadata ?? {};
  const ownerReferences = [controllerReference(owner)];
  // The server appends five characters, and shortens the prefix for them.
  const generateName = prefix ?? `${name.slice(0, NAME_MAX - 1)}-`;
  return { metadata: { generateName, namespace, labels, annotations, finalizers, ownerReferences }, spec };
}
