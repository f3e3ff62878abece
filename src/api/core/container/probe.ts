import {
  documentedEnum,
  inline,
  int32,
  int64,
  intOrString,
  list,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { signal } from "./signal.ts";

export const execAction = object("core/v1.ExecAction", {
  command: optional(1, list(string)),
});
export type ExecAction = Infer<typeof execAction>;

export const httpHeader = object("core/v1.HTTPHeader", {
  name: required(1, string),
  value: required(2, string),
});
export type HTTPHeader = Infer<typeof httpHeader>;

export const httpGetAction = object("core/v1.HTTPGetAction", {
  path: optional(1, string),
  port: required(2, intOrString),
  host: optional(3, string),
  scheme: optional(4, named("v1.URIScheme", documentedEnum("HTTP", "HTTPS"))),
  httpHeaders: optional(5, list(httpHeader)),
});
export type HTTPGetAction = Infer<typeof httpGetAction>;

export const tcpSocketAction = object("core/v1.TCPSocketAction", {
  port: required(1, intOrString),
  host: optional(2, string),
});
export type TCPSocketAction = Infer<typeof tcpSocketAction>;

export const grpcAction = object("core/v1.GRPCAction", {
  port: required(1, int32),
  service: pointer(2, string, { default: "", emitEmpty: true }),
});
export type GRPCAction = Infer<typeof grpcAction>;

export const sleepAction = object("core/v1.SleepAction", {
  seconds: required(1, int64),
});
export type SleepAction = Infer<typeof sleepAction>;

export const probeHandler = object("core/v1.ProbeHandler", {
  exec: pointer(1, execAction),
  httpGet: pointer(2, httpGetAction),
  tcpSocket: pointer(3, tcpSocketAction),
  grpc: pointer(4, grpcAction),
});
export type ProbeHandler = Infer<typeof probeHandler>;

export const probe = object("core/v1.Probe", {
  probeHandler: inline(1, probeHandler),
  initialDelaySeconds: optional(2, int32),
  timeoutSeconds: optional(3, int32),
  periodSeconds: optional(4, int32),
  successThreshold: optional(5, int32),
  failureThreshold: optional(6, int32),
  terminationGracePeriodSeconds: pointer(7, int64),
});
export type Probe = Infer<typeof probe>;

export const lifecycleHandler = object("core/v1.LifecycleHandler", {
  exec: pointer(1, execAction),
  httpGet: pointer(2, httpGetAction),
  tcpSocket: pointer(3, tcpSocketAction),
  sleep: pointer(4, sleepAction, { featureGate: "PodLifecycleSleepAction" }),
});
export type LifecycleHandler = Infer<typeof lifecycleHandler>;

export const lifecycle = object("core/v1.Lifecycle", {
  postStart: pointer(1, lifecycleHandler),
  preStop: pointer(2, lifecycleHandler),
  stopSignal: pointer(3, named("v1.Signal", signal)),
});
export type Lifecycle = Infer<typeof lifecycle>;
