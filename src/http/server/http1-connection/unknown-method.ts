/** Requests with methods that node:http does not parse, such as `FOO` or `get`. */
import { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

/** Has the bytes that could not be parsed as a request. */
export interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  /** The position of the error in them. */
  readonly bytesParsed?: number;
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]";
const REQUEST_LINE = new RegExp(`^(${TOKEN}{1,32}) (/\\S{0,8192}) HTTP/1\\.[01]$`);
/** The value has the space around it: a pattern that leaves it out would take cubic time. */
const HEADER = new RegExp(`^(${TOKEN}+):([^\\0-\\x08\\n-\\x1f]*)$`);

/**
 * The request at the position of the error, without its body: the connection ends with the response. Undefined when it
 * is malformed in another way, or its headers are not complete.
 */
export function parseUnknownMethod(
  { code, rawPacket, bytesParsed = 0 }: ClientError,
  socket: Duplex,
  headerBytes: number,
): IncomingMessage | undefined {
  if (code !== "HPE_INVALID_METHOD" || rawPacket === undefined) return undefined;
  // Requests before it, and their bodies, may be in the same packet.
  const start = rawPacket.lastIndexOf("\n", bytesParsed) + 1;
  const text = rawPacket.subarray(start, start + headerBytes).toString("latin1");
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [first = "", ...lines] = text.slice(0, end).split("\r\n");
  const request = REQUEST_LINE.exec(first);
  const headers = lines.map((line) => HEADER.exec(line));
  if (request === null || headers.includes(null)) return undefined;
  // node:http declares the type of TCP connections; others work as well.
  const incoming = new IncomingMessage(socket as IncomingMessage["socket"]);
  incoming.method = request[1]!;
  incoming.url = request[2]!;
  incoming.httpVersion = "1.1";
  incoming.httpVersionMajor = 1;
  incoming.httpVersionMinor = 1;
  for (const header of headers) {
    const [name, value] = [header![1]!, header![2]!.trim()];
    incoming.rawHeaders.push(name, value);
    incoming.headers[name.toLowerCase()] ??= value;
  }
  incoming.complete = true;
  incoming.push(null);
  return incoming;
}
