/** `/checkpoint/{namespace}/{pod}/{container}`: the runtime writes the state of a container to a file. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { jsonResponse, textResponse } from "../../http/respond.ts";
import type { Clock } from "../../std/time/clock.ts";
import { allContainers } from "../pods/pod-fields.ts";
import type { PodManager } from "../pods/pod-manager.ts";

export interface CheckpointOptions {
  readonly pods: PodManager;
  readonly clock: Clock;
}

/** Responses and their order are kubelet's. */
export async function serveCheckpoint(
  { pods, clock }: CheckpointOptions,
  { query, signal }: HttpRequest,
  { namespace = "", pod = "", container = "" }: Readonly<Record<string, string>>,
): Promise<HttpResponse> {
  const worker = pods.find(namespace, pod);
  if (worker === undefined) return textResponse(404, "pod does not exist");
  const isKnown = allContainers(worker.pod).some(({ spec }) => spec.name === container);
  if (!isKnown) return textResponse(404, `container ${container} does not exist`);
  // As kubelet, of several values the last.
  const timeout = parseInt64(new URLSearchParams(query).getAll("timeout").at(-1) ?? "0");
  if (timeout === undefined) return textResponse(404, "cannot parse value of timeout parameter");
  const name = `${namespace}/${pod}/${container}`;
  const running = worker.observation.containers.find((each) => each.name === container && each.state === "running");
  if (running === undefined)
    return textResponse(500, `checkpointing of ${name} failed (container ${container} not found)`);
  const directory = join(pods.rootDir, "checkpoints");
  const time = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
  const location = join(directory, `checkpoint-${pod}_${namespace}-${container}-${time}.tar`);
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await pods.runtime.checkpointContainer({ containerId: running.id, location, timeout }, signal);
    return jsonResponse(200, { items: [location] });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return textResponse(500, `checkpointing of ${name} failed (${reason})`);
  }
}

function parseInt64(text: string): bigint | undefined {
  if (!/^[-+]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace("+", ""));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
