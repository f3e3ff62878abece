/** W3C Trace Context and Baggage: the headers that connect the spans of several programs. */

export interface SpanContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the caller records its spans. */
  readonly sampled: boolean;
  /** Entries of tracing systems; passed on as they are. */
  readonly traceState: string;
  /** Application data; passed on as they are. */
  readonly baggage: string;
}

/** The limits of W3C Trace Context (tracestate) and W3C Baggage. */
const STATE_MEMBERS_MAX = 32;
const STATE_LENGTH_MAX = 32 * 513;
const BAGGAGE_LENGTH_MAX = 8192;

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const STATE_MEMBER =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const BAGGAGE = /^[\x20-\x7e]*$/;

/** Undefined without a valid `traceparent`. */
export function parseTraceContext(headers: Readonly<Record<string, string | undefined>>): SpanContext | undefined {
  const { traceparent } = headers;
  if (traceparent === undefined) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return {
    traceId,
    spanId,
    sampled: (Number.parseInt(flags, 16) & 1) === 1,
    traceState: validState(headers.tracestate ?? ""),
    baggage: validBaggage(headers.baggage ?? ""),
  };
}

/** An invalid list is dropped as a whole. */
function validState(text: string): string {
  if (text === "" || text.length > STATE_LENGTH_MAX) return "";
  const members = text
    .split(",")
    .map((member) => member.trim())
    .filter((member) => member !== "");
  const keys = new Set(members.map((member) => member.split("=", 1)[0]));
  const isValid = members.length <= STATE_MEMBERS_MAX && keys.size === members.length;
  return isValid && members.every((member) => STATE_MEMBER.test(member)) ? members.join(",") : "";
}

function validBaggage(text: string): string {
  return text.length <= BAGGAGE_LENGTH_MAX && BAGGAGE.test(text) ? text : "";
}

/** The headers for a request that the span makes. */
export function formatTraceContext(context: SpanContext): Readonly<Record<string, string>> {
  const { traceId, spanId, sampled, traceState, baggage } = context;
  return {
    traceparent: `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`,
    ...(traceState === "" ? {} : { tracestate: traceState }),
    ...(baggage === "" ? {} : { baggage }),
  };
}
