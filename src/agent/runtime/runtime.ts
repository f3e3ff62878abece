/**
 * The interface of a container runtime: the CRI calls that the agent uses, typed by the CRI messages. An implementation
 * guarantees: a rejected call is a `RuntimeError` with the gRPC code's name; an aborted signal cancels the call at the
 * runtime; every call except `pullImage` has the client's timeout; a call for an absent object rejects with
 * `NOT_FOUND`, except stop and remove, which succeed. `runtime-conformance.ts` has the tests.
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
  readonly runtimeConfig: Call<Service["RuntimeConfig"]>;
  readonly updateRuntimeConfig: Call<Service["UpdateRuntimeConfig"]>;
  readonly runPodSandbox: Call<Service["RunPodSandbox"]>;
  readonly stopPodSandbox: Call<Service["StopPodSandbox"]>;
  readonly removePodSandbox: Call<Service["RemovePodSandbox"]>;
  readonly podSandboxStatus: Call<Service["PodSandboxStatus"]>;
  readonly listPodSandbox: Call<Service["ListPodSandbox"]>;
  readonly createContainer: Call<Service["CreateContainer"]>;
  readonly startContainer: Call<Service["StartContainer"]>;
  /** `timeout` of the request is the grace period in seconds; it extends the timeout of the call. */
  readonly stopContainer: Call<Service["StopContainer"]>;
  readonly removeContainer: Call<Service["RemoveContainer"]>;
  readonly listContainers: Call<Service["ListContainers"]>;
  readonly containerStatus: Call<Service["ContainerStatus"]>;
  readonly updateContainerResources: Call<Service["UpdateContainerResources"]>;
  readonly listContainerStats: Call<Service["ListContainerStats"]>;
  readonly listPodSandboxStats: Call<Service["ListPodSandboxStats"]>;
  readonly listPodSandboxMetrics: Call<Service["ListPodSandboxMetrics"]>;
  readonly listMetricDescriptors: Call<Service["ListMetricDescriptors"]>;
  readonly reopenContainerLog: Call<Service["ReopenContainerLog"]>;
  /** `timeout` of the request, in seconds, extends the timeout of the call. */
  readonly execSync: Call<Service["ExecSync"]>;
  /** The response's URL serves one connection, and expires after a minute. */
  readonly exec: Call<Service["Exec"]>;
  readonly attach: Call<Service["Attach"]>;
  readonly portForward: Call<Service["PortForward"]>;
  /** `timeout` of the request, in seconds, extends the timeout of the call. */
  readonly checkpointContainer: Call<Service["CheckpointContainer"]>;
}

export interface ImageService {
  readonly listImages: Call<Images["ListImages"]>;
  readonly imageStatus: Call<Images["ImageStatus"]>;
  /** Has no timeout. */
  readonly pullImage: Call<Images["PullImage"]>;
  readonly removeImage: Call<Images["RemoveImage"]>;
  readonly imageFsInfo: Call<Images["ImageFsInfo"]>;
}

/** A failed call. `message` reads as the Go client prints it: `rpc error: code = Unknown desc = …`. */
export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  /** gRPC's name of the code: `NOT_FOUND`, `UNAVAILABLE`, `DEADLINE_EXCEEDED`, … */
  readonly code: string;
  /** The runtime's message, without the prefix. */
  readonly detail: string;

  constructor(code: string, detail: string, options?: { readonly cause?: unknown }) {
    super(`rpc error: code = ${toGoCode(code)} desc = ${detail}`, options);
    this.code = code;
    this.detail = detail;
  }
}

/** Codes of a runtime that cannot be reached, and of a cancelled call. */
const UNREACHABLE: ReadonlySet<string> = new Set(["UNAVAILABLE", "CANCELLED"]);

/** Whether the error is about the connection and not about the requested object. */
export function isUnreachable(error: RuntimeError): boolean {
  return UNREACHABLE.has(error.code);
}

/** `NOT_FOUND` → `NotFound`, as in Go. */
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
