/** Reading what a server answered; tolerant, since proxies in between answer in their own words. */
import { type Status, type StatusCause, type StatusDetails, StatusError } from "../api/status.ts";
import type { HttpResponse } from "../http/message.ts";

/** Of an error's text that is no `Status`, this much is shown. */
const TEXT_MAX = 1024;
const ERROR_BYTES_MAX = 1024 * 1024;

export async function readAll(body: HttpResponse["body"], limitBytes = Number.POSITIVE_INFINITY): Promise<Buffer> {
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.length);
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body as AsyncIterable<Uint8Array> | readonly Uint8Array[]) {
    pieces.push(piece);
    length += piece.length;
    if (length >= limitBytes) break;
  }
  return Buffer.concat(pieces);
}

/** The body as JSON; throws a `StatusError` when the answer is not 2xx or not JSON. */
export async function readJson(response: HttpResponse): Promise<unknown> {
  if (response.status < 200 || response.status > 299) throw await readError(response);
  const bytes = await readAll(response.body);
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new StatusError(500, "InternalError", `Cannot read the server's answer: ${(cause as Error).message}`, {
      cause,
    });
  }
}

export async function readError(response: HttpResponse): Promise<StatusError> {
  const text = (await readAll(response.body, ERROR_BYTES_MAX).catch(() => Buffer.alloc(0))).toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  return parseStatusError(value) ?? errorFromText(response, text);
}

/** A `Status` as an error; undefined when the value is none. */
export function parseStatusError(value: unknown): StatusError | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const status = value as Partial<Status>;
  if (status.kind !== "Status" || typeof status.code !== "number") return undefined;
  const details = detailsOf(status.details);
  return new StatusError(
    status.code,
    typeof status.reason === "string" ? status.reason : "",
    typeof status.message === "string" ? status.message : `the server answered with code ${status.code}`,
    details === undefined ? {} : { details },
  );
}

function detailsOf(value: unknown): StatusDetails | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { name, group, kind, uid, causes, retryAfterSeconds } = value as StatusDetails;
  return {
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof group === "string" ? { group } : {}),
    ...(typeof kind === "string" ? { kind } : {}),
    ...(typeof uid === "string" ? { uid } : {}),
    ...(Array.isArray(causes) ? { causes: causes.filter((cause) => typeof cause === "object") as StatusCause[] } : {}),
    ...(typeof retryAfterSeconds === "number" ? { retryAfterSeconds } : {}),
  };
}

const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  409: "Conflict",
  410: "Expired",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

function errorFromText(response: HttpResponse, text: string): StatusError {
  const words = text.trim().slice(0, TEXT_MAX);
  const message = `the server answered with code ${response.status}${words === "" ? "" : `: ${words}`}`;
  const seconds = Number(response.headers["retry-after"]);
  const details = Number.isInteger(seconds) && seconds >= 0 ? { details: { retryAfterSeconds: seconds } } : {};
  return new StatusError(response.status, REASONS[response.status] ?? "Unknown", message, details);
}
