/** The `Status` object of an API error, thrown as a `StatusError`. */
import { errorsMax, type FieldError } from "../schema/validation/field-error.ts";
import { goQuote } from "../schema/value/go-quote.ts";

export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly status: "Failure" | "Success";
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code: number;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;

  constructor(
    code: number,
    reason: string,
    message: string,
    options?: {
      readonly details?: StatusDetails;
      readonly metadata?: Status["metadata"];
      readonly cause?: unknown;
    },
  ) {
    super(shorten(message, MESSAGE_LENGTH_MAX), { cause: options?.cause });
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      metadata: options?.metadata ?? {},
      status: "Failure",
      message: this.message,
      // Unexpected errors have no reason.
      ...(reason === "" ? {} : { reason }),
      ...(options?.details === undefined ? {} : { details: shortenDetails(options.details) }),
      code,
    };
  }
}

/** In characters. Texts of a request appear several times in an error, each character escaped as up to six. */
const MESSAGE_LENGTH_MAX = 2 ** 18;
const DETAIL_LENGTH_MAX = 2 ** 16;

function shorten(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}...` : text;
}

function shortenDetails(details: StatusDetails): StatusDetails {
  const { name = "", causes = [] } = details;
  const isLong = (text = "") => text.length > DETAIL_LENGTH_MAX;
  if (!isLong(name) && !causes.some(({ field, message }) => isLong(field) || isLong(message))) return details;
  const shortCauses = causes.map(({ reason, message, field }) => ({
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message: shorten(message, DETAIL_LENGTH_MAX) }),
    ...(field === undefined ? {} : { field: shorten(field, DETAIL_LENGTH_MAX) }),
  }));
  return {
    ...details,
    ...(details.name === undefined ? {} : { name: shorten(name, DETAIL_LENGTH_MAX) }),
    ...(details.causes === undefined ? {} : { causes: shortCauses }),
  };
}

/** The resource that an error names: `pods "web" not found`, `pods.apps "x" is invalid`. */
export interface ErrorSubject {
  readonly group: string;
  /** The plural resource, or the kind for `invalid`. */
  readonly resource: string;
  readonly name: string;
}

function qualifiedResource(subject: ErrorSubject): string {
  return subject.group === "" ? subject.resource : `${subject.resource}.${subject.group}`;
}

function detailsOf(subject: ErrorSubject): StatusDetails {
  return {
    ...(subject.name === "" ? {} : { name: subject.name }),
    ...(subject.group === "" ? {} : { group: subject.group }),
    ...(subject.resource === "" ? {} : { kind: subject.resource }),
  };
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

/** An InternalError as Kubernetes formats it. */
export function internalError(message: string): StatusError {
  const text = `Internal error occurred: ${message}`;
  return new StatusError(500, "InternalError", text, { details: { causes: [{ message }] } });
}

export function unauthorized(): StatusError {
  return new StatusError(401, "Unauthorized", "Unauthorized");
}

export function forbidden(subject: ErrorSubject, why: string): StatusError {
  const name = subject.name === "" ? "" : ` ${goQuote(subject.name)}`;
  return new StatusError(403, "Forbidden", `${qualifiedResource(subject)}${name} is forbidden: ${why}`, {
    details: detailsOf(subject),
  });
}

export function notFound(subject: ErrorSubject): StatusError {
  return new StatusError(404, "NotFound", `${qualifiedResource(subject)} ${goQuote(subject.name)} not found`, {
    details: detailsOf(subject),
  });
}

export function isNotFound(error: unknown): boolean {
  return error instanceof StatusError && error.status.code === 404;
}

/** For `catch`: returns undefined for a 404, throws any other error. */
export function ignoreNotFound(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

export function alreadyExists(subject: ErrorSubject): StatusError {
  return new StatusError(
    409,
    "AlreadyExists",
    `${qualifiedResource(subject)} ${goQuote(subject.name)} already exists`,
    {
      details: detailsOf(subject),
    },
  );
}

export function conflict(subject: ErrorSubject, why: string): StatusError {
  return new StatusError(
    409,
    "Conflict",
    `Operation cannot be fulfilled on ${qualifiedResource(subject)} ${goQuote(subject.name)}: ${why}`,
    { details: detailsOf(subject) },
  );
}

/** `metadata` may hold a continue token to go on with. */
export function expired(message: string, metadata: Status["metadata"] = {}): StatusError {
  return new StatusError(410, "Expired", message, { metadata });
}

/** The maximum length of the texts of all errors together, in characters. A single error can be longer. */
const CAUSES_LENGTH_MAX = 2 ** 16;

/** `subject.resource` is the kind here, as in Kubernetes. Shows the first errors, up to `errorsMax`. */
export function invalid(
  subject: ErrorSubject,
  errors: readonly FieldError[],
  render: (e: FieldError) => string,
): StatusError {
  const causes = renderCauses(errors, render);
  // A repeated error is a cause each time, but appears once in the message.
  const texts: string[] = [];
  const seen = new Set<string>();
  for (const [i, { field, message }] of causes.entries()) {
    const text = `${field}: ${message}`;
    if (!seen.has(text) || errors[i]?.isDistinct === true) texts.push(text);
    seen.add(text);
  }
  if (causes.length < errors.length) texts.push(`and ${errors.length - causes.length} more errors`);
  const all = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return new StatusError(422, "Invalid", `${qualifiedResource(subject)} ${goQuote(subject.name)} is invalid: ${all}`, {
    details: { ...detailsOf(subject), causes },
  });
}

function renderCauses(errors: readonly FieldError[], render: (e: FieldError) => string): readonly StatusCause[] {
  const causes: StatusCause[] = [];
  let length = 0;
  for (const error of errors) {
    if (causes.length === errorsMax || length > CAUSES_LENGTH_MAX) break;
    const message = render(error);
    const field = shorten(error.field, DETAIL_LENGTH_MAX);
    length += message.length + field.length;
    causes.push({ reason: error.type, message, field });
  }
  return causes;
}
