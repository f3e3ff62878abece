/** Rules for probes and lifecycle hooks: exactly one handler with its required fields. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { portName, portNumber } from "../../meta/validation/names.ts";
import type { LifecycleHandler, Probe } from "./probe.ts";

const SCHEMES = ["HTTP", "HTTPS"];
const HEADER_NAME = /^[-A-Za-z0-9]+$/;
const HEADER_MESSAGE =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

export function validateProbe(probe: Probe, path: string): readonly FieldError[] {
  const errors: FieldError[] = [...validateHandler(probe, path, undefined)];
  for (const field of [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
  ] as const) {
    const value = probe[field] ?? 0;
    if (value < 0) errors.push(invalidField(child(path, field), value, "must be greater than or equal to 0"));
  }
  const grace = probe.terminationGracePeriodSeconds;
  if (grace !== undefined && grace <= 0) {
    errors.push(invalidField(child(path, "terminationGracePeriodSeconds"), grace, "must be greater than 0"));
  }
  return errors;
}

/** `gracePeriodSeconds` is the maximum of a sleep; undefined for probes, which cannot sleep. */
export function validateHandler(
  handler: LifecycleHandler | Probe,
  path: string,
  gracePeriodSeconds: number | undefined,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  let handlers = 0;
  const checkHandler = (name: string, check: () => readonly FieldError[]): void => {
    handlers += 1;
    const at = child(path, name);
    if (handlers > 1) errors.push(forbiddenField(at, "may not specify more than 1 handler type"));
    else errors.push(...check());
  };
  const { exec, httpGet, tcpSocket } = handler;
  if (exec !== undefined) {
    const command = child(child(path, "exec"), "command");
    checkHandler("exec", () => ((exec.command ?? []).length === 0 ? [requiredField(command)] : []));
  }
  if (httpGet !== undefined) checkHandler("httpGet", () => validateHttpGet(httpGet, child(path, "httpGet")));
  if (tcpSocket !== undefined) {
    checkHandler("tcpSocket", () => validatePortReference(tcpSocket.port, child(child(path, "tcpSocket"), "port")));
  }
  const grpc = "grpc" in handler ? handler.grpc : undefined;
  if (grpc !== undefined) {
    checkHandler("grpc", () =>
      portNumber(grpc.port).map((p) => invalidField(child(child(path, "grpc"), "port"), grpc.port, p)),
    );
  }
  const sleep = "sleep" in handler ? handler.sleep : undefined;
  if (sleep !== undefined) {
    checkHandler("sleep", () => {
      const most = gracePeriodSeconds ?? 0;
      if (sleep.seconds >= 0 && sleep.seconds <= most) return [];
      const detail = `must be non-negative and less than terminationGracePeriodSeconds (${most})`;
      return [invalidField(child(path, "sleep"), sleep.seconds, detail)];
    });
  }
  return handlers === 0 ? [requiredField(path, "must specify a handler type")] : errors;
}

type HttpGet = NonNullable<LifecycleHandler["httpGet"]>;

function validateHttpGet(httpGet: HttpGet, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!httpGet.path) errors.push(requiredField(child(path, "path")));
  errors.push(...validatePortReference(httpGet.port, child(path, "port")));
  const scheme: string = httpGet.scheme ?? "";
  if (!SCHEMES.includes(scheme)) errors.push(notSupported(child(path, "scheme"), scheme, SCHEMES));
  const headerErrors = validateEach(httpGet.httpHeaders ?? [], ({ name }) =>
    HEADER_NAME.test(name) ? [] : [invalidField(child(path, "httpHeaders"), name, HEADER_MESSAGE)],
  );
  return [...errors, ...headerErrors];
}

function validatePortReference(port: number | string, path: string): FieldError[] {
  const problems = typeof port === "number" ? portNumber(port) : portName(port);
  return problems.map((problem) => invalidField(path, port, problem));
}
