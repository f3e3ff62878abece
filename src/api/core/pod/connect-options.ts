import {
  boolean,
  int32,
  int64,
  list,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const podAttachOptions = object("core/v1.PodAttachOptions", {
  ...typeMeta,
  stdin: optional(1, boolean),
  stdout: optional(2, boolean),
  stderr: optional(3, boolean),
  tty: optional(4, boolean),
  container: optional(5, string),
});
export type PodAttachOptions = Infer<typeof podAttachOptions>;

export const podExecOptions = object("core/v1.PodExecOptions", {
  ...typeMeta,
  stdin: optional(1, boolean),
  stdout: optional(2, boolean),
  stderr: optional(3, boolean),
  tty: optional(4, boolean),
  container: optional(5, string),
  command: required(6, list(string)),
});
export type PodExecOptions = Infer<typeof podExecOptions>;

export const podLogOptions = object("core/v1.PodLogOptions", {
  ...typeMeta,
  container: optional(1, string),
  follow: optional(2, boolean),
  previous: optional(3, boolean),
  sinceSeconds: pointer(4, int64),
  sinceTime: pointer(5, time),
  timestamps: optional(6, boolean),
  tailLines: pointer(7, int64),
  limitBytes: pointer(8, int64),
  insecureSkipTLSVerifyBackend: optional(9, boolean),
  stream: pointer(10, string, { featureGate: "PodLogsQuerySplitStreams" }),
});
export type PodLogOptions = Infer<typeof podLogOptions>;

export const podPortForwardOptions = object("core/v1.PodPortForwardOptions", {
  ...typeMeta,
  ports: optional(1, list(int32)),
});
export type PodPortForwardOptions = Infer<typeof podPortForwardOptions>;

export const podProxyOptions = object("core/v1.PodProxyOptions", {
  ...typeMeta,
  path: optional(1, string),
});
export type PodProxyOptions = Infer<typeof podProxyOptions>;
