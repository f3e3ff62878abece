/** Reads responses of servers; tolerant, since proxies send responses of their own. */
import { type Status, type StatusCause, type StatusDetails, StatusError } from "../api/status.ts";
import type { HttpResponse } from "../http/message.ts";
import { decodeCbor } from "../schema/cbor/decode.ts";
import { ByteChunks } from "../std/collections/byte-chunks.ts";

/** The maximum length of an error text that is not a `Status`, in an error message. */
const TEXT_MAX = 1024;
const ERROR_BYTES_MAX = 1024 * 1024;

export async function readAll(body: HttpResponse["body"], limitBytes = Number.POSITIVE_INFINITY): Promise<Buffer> {
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.length);
  const chunks = new ByteChunks();
  for await (const chunk of body as AsyncIterable<Uint8Array> | readonly Uint8Array[]) {
    chunks.add(chunk);
    if (chunks.length >= limitBytes) break;
  }
  return chunks.concat();
}

/** The body, JSON or CBOR; throws a `StatusError` when the response is not 2xx or neither of them. */
export async function readValue(response: HttpResponse): Promise<unknown> {
  if (response.status < 200 || response.status > 299) throw await readError(response);
  const bytes = await readAll(response.body);
  if (bytes.length === 0) return undefined;
  try {
    return parseBody(response, bytes);
  } catch (cause) {
    throw new StatusError(500, "InternalError", `Cannot read the response of the server: ${(cause as Error).message}`, {
      cause,
    });
  }
}

export async function readError(response: HttpResponse): Promise<StatusError> {
  const bytes = await readAll(response.body, ERROR_BYTES_MAX).catch(() => Buffer.alloc(0));
  let value: unknown;
  try {
    value = parseBody(response, bytes);
  } catch {
    value = undefined;
  }
  return parseStatusError(value) ?? errorFromText(response, bytes.toString("utf8"));
}

function parseBody(response: HttpResponse, bytes: Buffer): unknown {
  return hasMediaType(response, "application/cbor") ? decodeCbor(bytes) : JSON.parse(bytes.toString("utf8"));
}

export function hasMediaType({ headers }: HttpResponse, type: string): boolean {
  const [value = ""] = String(headers["content-type"] ?? "").split(";");
  return value.trim().toLowerCase() === type;
}

/** The error for a `Status`; undefined for another value. */
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

function isCause(value: unknown): value is StatusCause {
  return typeof value === "object" && value !== null;
}

function detailsOf(value: unknown): StatusDetails | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { name, group, kind, uid, causes, retryAfterSeconds } = value as StatusDetails;
  return {
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof group === "string" ? { group } : {}),
    ...(typeof kind === "string" ? { kind } : {}),
    ...(typeof uid === "string" ? { uid } : {}),
    ...(Array.isArray(causes) ? { causes: causes.filter(isCause) } : {}),
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
  const excerpt = text.trim().slice(0, TEXT_MAX);
  const message = `the server answered with code ${response.status}${excerpt === "" ? "" : `: ${excerpt}`}`;
  const seconds = Number(response.headers["retry-after"]);
  const details = Number.isInteger(seconds) && seconds >= 0 ? { details: { retryAfterSeconds: seconds } } : {};
  return new StatusError(response.status, REASONS[response.status] ?? "Unknown", message, details);
}
