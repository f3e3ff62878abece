/** The options of a container's log: decoded from a query as kube-apiserver and kubelet do, and their validation. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  unquoted,
} from "../../../schema/validation/field-error.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { type Instant, parseInstant } from "../../../schema/value/time.ts";
import { explainTimeError } from "../../../schema/value/time-error.ts";

export interface LogQuery {
  readonly container: string;
  readonly follow: boolean;
  readonly previous: boolean;
  readonly sinceSeconds: bigint | undefined;
  /** The year 1 for an empty time, as Go's zero time. */
  readonly sinceTime: Instant | undefined;
  readonly timestamps: boolean;
  readonly tailLines: bigint | undefined;
  readonly limitBytes: bigint | undefined;
  readonly stream: string | undefined;
}

/** A value of the query has another type; the message is Go's. */
export class OptionError extends Error {
  override readonly name = "OptionError";
}

export const LOG_STREAMS: readonly string[] = ["Stdout", "Stderr", "All"];
const ZERO_TIME: Instant = { seconds: Date.parse("0001-01-01T00:00:00Z") / 1000, nanos: 0 };

/** Of repeated parameters the first counts. Throws an `OptionError` for the first field that cannot be decoded. */
export function decodeLogQuery(query: URLSearchParams): LogQuery {
  const decode = <T>(name: string, of: (text: string) => T): T | undefined => {
    const text = query.get(name);
    return text === null ? undefined : of(text);
  };
  // In the order of the fields, by which the error of a query with several is chosen.
  return {
    container: query.get("container") ?? "",
    follow: decode("follow", decodeFlag) ?? false,
    previous: decode("previous", decodeFlag) ?? false,
    sinceSeconds: decode("sinceSeconds", decodeInteger),
    sinceTime: decode("sinceTime", decodeTime),
    timestamps: decode("timestamps", decodeFlag) ?? false,
    tailLines: decode("tailLines", decodeInteger),
    limitBytes: decode("limitBytes", decodeInteger),
    stream: query.get("stream") ?? undefined,
  };
}

function decodeFlag(text: string): boolean {
  return text !== "0" && text.toLowerCase() !== "false";
}

/** As Go's `strconv.ParseInt`. */
function decodeInteger(text: string): bigint {
  const fail = (why: string): never => {
    throw new OptionError(`strconv.ParseInt: parsing ${goQuote(text)}: ${why}`);
  };
  if (!/^[-+]?\d+$/.test(text)) return fail("invalid syntax");
  const significant = text.replace(/^([-+]?)0+(?=\d)/, "$1");
  if (significant.length > INTEGER_LENGTH_MAX) return fail("value out of range");
  const value = BigInt(significant.replace("+", ""));
  return BigInt.asIntN(64, value) === value ? value : fail("value out of range");
}

/** A sign and 19 digits. */
const INTEGER_LENGTH_MAX = 20;

function decodeTime(text: string): Instant {
  if (text === "" || text === "null") return ZERO_TIME;
  const instant = parseInstant(text);
  if (instant === undefined) throw new OptionError(explainTimeError(text, false));
  return instant;
}

/** Kubernetes' errors, but for the gate of `stream`, which the caller checks. */
export function validateLogQuery(options: LogQuery): readonly FieldError[] {
  const { tailLines, limitBytes, sinceSeconds, sinceTime, stream } = options;
  const errors: FieldError[] = [];
  if (tailLines !== undefined && tailLines < 0n) {
    errors.push(invalidField("tailLines", unquoted(String(tailLines)), "must be greater than or equal to 0"));
  }
  const checkPositive = (name: string, value: bigint | undefined): void => {
    if (value !== undefined && value < 1n) {
      errors.push(invalidField(name, unquoted(String(value)), "must be greater than 0"));
    }
  };
  checkPositive("limitBytes", limitBytes);
  if (sinceSeconds !== undefined && sinceTime !== undefined) {
    errors.push(forbiddenField("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
  } else checkPositive("sinceSeconds", sinceSeconds);
  if (stream === undefined) return errors;
  if (!LOG_STREAMS.includes(stream)) errors.push(notSupported("stream", stream, LOG_STREAMS));
  if (stream !== "All" && tailLines !== undefined) {
    errors.push(forbiddenField("[]", "`tailLines` and specific `stream` are mutually exclusive for now"));
  }
  return errors;
}
