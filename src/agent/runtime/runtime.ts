/**
 * What the agent asks of a container runtime: the CRI calls it uses, typed by the CRI messages. Promises of the seam:
 * a rejected call is a `RuntimeError` with the gRPC code's name; an aborted signal cancels the call at the runtime;
 * every call but `pullImage` is bounded by the client's own timeout; a call on something absent rejects with
 * `NOT_FOUND`, except stop and remove, which succeed.
 */
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import type { imageService, runtimeService } from "./cri/services.ts";

interface Method {
  readonly request: ObjectSchema;
  readonly response: ObjectSchema;
}

type Call<M extends Method> = (request: Infer<M["request"]>, signal?: AbortSignal) => Promise<Infer<M["response"]>>;

type Service = typeof runtimeService;
type Images = typeof imageService;

export interface Runtime {
  readonly version: Call<Service["Version"]>;
  readonly status: Call<Service["Status"]>;
  readonly updateRuntimeConfig: Call<Service["UpdateRuntimeConfig"]>;
  readonly runPodSandbox: Call<Service["RunPodSandbox"]>;
  readonly stopPodSandbox: Call<Service["StopPodSandbox"]>;
  readonly removePodSandbox: Call<Service["RemovePodSandbox"]>;
  readonly podSandboxStatus: Call<Service["PodSandboxStatus"]>;
  readonly listPodSandbox: Call<Service["ListPodSandbox"]>;
  readonly createContainer: Call<Service["CreateContainer"]>;
  readonly startContainer: Call<Service["StartContainer"]>;
  /** `timeout` of the request is the grace in seconds; the call's own limit is extended by it. */
  readonly stopContainer: Call<Service["StopContainer"]>;
  readonly removeContainer: Call<Service["RemoveContainer"]>;
  readonly listContainers: Call<Service["ListContainers"]>;
  readonly containerStatus: Call<Service["ContainerStatus"]>;
  readonly updateContainerResources: Call<Service["UpdateContainerResources"]>;
  readonly listContainerStats: Call<Service["ListContainerStats"]>;
  readonly reopenContainerLog: Call<Service["ReopenContainerLog"]>;
  /** `timeout` of the request is in seconds; the call's own limit is extended by it. */
  readonly execSync: Call<Service["ExecSync"]>;
}

export interface ImageService {
  readonly listImages: Call<Images["ListImages"]>;
  readonly imageStatus: Call<Images["ImageStatus"]>;
  /** Not bounded by the request timeout: a pull takes as long as it takes. */
  readonly pullImage: Call<Images["PullImage"]>;
  readonly removeImage: Call<Images["RemoveImage"]>;
  readonly imageFsInfo: Call<Images["ImageFsInfo"]>;
}

/** A failed call. `message` reads as the Go client prints it: `rpc error: code = Unknown desc = …`. */
export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  /** gRPC's name of the code: `NOT_FOUND`, `UNAVAILABLE`, `DEADLINE_EXCEEDED`, … */
  readonly code: string;
  /** What the runtime said, without the prefix. */
  readonly detail: string;

  constructor(code: string, detail: string, options?: { readonly cause?: unknown }) {
    super(`rpc error: code = ${toGoCode(code)} desc = ${detail}`, options);
    this.code = code;
    this.detail = detail;
  }
}

/** Codes of a runtime that cannot be reached, or that nobody waits for any more. */
const UNREACHABLE: ReadonlySet<string> = new Set(["UNAVAILABLE", "CANCELLED"]);

/** Whether it says nothing of what was asked, only of the way there. */
export function isUnreachable(error: RuntimeError): boolean {
  return UNREACHABLE.has(error.code);
}

/** `NOT_FOUND` → `NotFound`, as Go spells codes. */
export function toGoCode(code: string): string {
  if (code === "CANCELLED") {
    return "Canceled";
  }
  return code
    .toLowerCase()
    .split("_")
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join("");
}

export function isNotFound(error: unknown): boolean {
  return error instanceof RuntimeError && error.code === "NOT_FOUND";
}
