/**
 * Rewrites the links of proxied responses, so that they lead through the proxy: URLs in attributes of `text/html`, and
 * `Location`. Only links with an absolute path on the same host change.
 */
import { Transform } from "node:stream";
import { createDeflate, createGunzip, createGzip, createInflate } from "node:zlib";
import { composeBody } from "../../http/compose-body.ts";
import type { HttpResponse } from "../../http/message.ts";

export interface LinkContext {
  /** The path of the proxy: `/api/v1/namespaces/a/services/b/proxy`. */
  readonly prefix: string;
  /** The hosts, with their ports, by which the client and this server address the backend. */
  readonly hosts: readonly string[];
}

export function rewriteLinks(response: HttpResponse, context: LinkContext): HttpResponse {
  const { location, "content-type": type, "content-encoding": encoding = "identity" } = response.headers;
  if (typeof location === "string" && location !== "") {
    return { ...response, headers: { ...response.headers, location: rewriteUrl(location, context) } };
  }
  const codec = typeof encoding === "string" ? codecs[encoding.trim().toLowerCase()] : undefined;
  const isHtml = typeof type === "string" && type.split(";")[0]?.trim().toLowerCase() === "text/html";
  if (!isHtml || codec === undefined || !(Symbol.asyncIterator in response.body)) return response;
  const { "content-length": _, ...headers } = response.headers;
  const body = codec(response.body, new HtmlRewriter(context));
  return { ...response, headers, body };
}

type Codec = (body: AsyncIterable<Uint8Array>, rewriter: Transform) => AsyncIterable<Uint8Array>;

const codecs: Readonly<Record<string, Codec>> = {
  identity: (body, rewriter) => composeBody(body, rewriter),
  gzip: (body, rewriter) => composeBody(body, createGunzip(), rewriter, createGzip()),
  deflate: (body, rewriter) => composeBody(body, createInflate(), rewriter, createDeflate()),
};

const ABSOLUTE = /^(?:[a-z][a-z0-9+.-]*:)?\/\/([^/?#]*)/i;

/** Paths that already have the prefix stay, as do relative ones and those of other hosts. */
export function rewriteUrl(url: string, { prefix, hosts }: LinkContext): string {
  const [origin = "", host] = ABSOLUTE.exec(url) ?? [];
  if (host !== undefined && !hosts.includes(host)) return url;
  const path = url.slice(origin.length);
  if (!path.startsWith("/")) return url;
  return path.startsWith(prefix) ? path : `${prefix}${path}`;
}

/** The attributes that hold a URL, by element. */
const URL_ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  a: ["href"],
  applet: ["codebase"],
  area: ["href"],
  audio: ["src"],
  base: ["href"],
  blockquote: ["cite"],
  body: ["background"],
  button: ["formaction"],
  command: ["icon"],
  del: ["cite"],
  embed: ["src"],
  form: ["action"],
  frame: ["longdesc", "src"],
  head: ["profile"],
  html: ["manifest"],
  iframe: ["longdesc", "src"],
  img: ["longdesc", "src", "usemap"],
  input: ["src", "formaction", "usemap"],
  ins: ["cite"],
  link: ["href"],
  object: ["classid", "codebase", "data", "usemap"],
  q: ["cite"],
  script: ["src"],
  source: ["src"],
  video: ["poster", "src"],
};
/** Elements whose content has no tags. */
const RAW_TEXT = new Set(["iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"]);
/** A longer tag passes unchanged. */
const TAG_LENGTH_MAX = 8 * 1024;

const TAG_START = /<(?:!--|[a-z!/?])/i;
/** The value is optional, so that a name without one is skipped as a whole. */
const ATTRIBUTE = /([^\s"'<>/=]+)(?:(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+))?/g;

/** Works on bytes as Latin-1: tags and attributes are ASCII in every encoding that pages have. */
class HtmlRewriter extends Transform {
  readonly #context: LinkContext;
  #pending = "";
  /** What ends the current comment or raw text; undefined between tags. */
  #skippedUntil: RegExp | undefined;

  constructor(context: LinkContext) {
    super();
    this.#context = context;
  }

  override _transform(chunk: Uint8Array, _: string, done: () => void): void {
    this.#pending += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString("latin1");
    this.#push(this.#takeComplete());
    done();
  }

  override _flush(done: () => void): void {
    this.#push(this.#pending);
    done();
  }

  #push(text: string): void {
    if (text !== "") this.push(Buffer.from(text, "latin1"));
  }

  /** Returns the rewritten text up to the last complete tag, and keeps the rest. */
  #takeComplete(): string {
    let result = "";
    let at = 0;
    const text = this.#pending;
    while (at < text.length) {
      const found = search(this.#skippedUntil ?? TAG_START, text, at);
      if (found === undefined) {
        // The end may be the start of what is searched.
        const kept = Math.max(at, text.length - TERMINATOR_LENGTH_MAX);
        result += text.slice(at, kept);
        at = kept;
        break;
      }
      if (this.#skippedUntil !== undefined) {
        const end = found.index + found.text.length;
        result += text.slice(at, end);
        at = end;
        this.#skippedUntil = undefined;
        continue;
      }
      result += text.slice(at, found.index);
      at = found.index;
      if (found.text === "<!--") {
        this.#skippedUntil = /-->/;
        continue;
      }
      const end = tagEnd(text, at);
      if (end === undefined) {
        if (text.length - at <= TAG_LENGTH_MAX) break;
        result += text.slice(at, at + TAG_LENGTH_MAX);
        at += TAG_LENGTH_MAX;
        continue;
      }
      result += this.#rewriteTag(text.slice(at, end));
      at = end;
    }
    this.#pending = text.slice(at);
    return result;
  }

  #rewriteTag(tag: string): string {
    const [start = "", name = ""] = /^<([a-z][^\s/>]*)/i.exec(tag) ?? [];
    const element = name.toLowerCase();
    if (RAW_TEXT.has(element)) this.#skippedUntil = new RegExp(`</${element}`, "i");
    const attributes = Object.hasOwn(URL_ATTRIBUTES, element) ? URL_ATTRIBUTES[element] : undefined;
    // Go's tokenizer, with which Kubernetes rewrites, writes names in lower case.
    const lowerStart = start.toLowerCase();
    if (attributes === undefined) return `${lowerStart}${tag.slice(start.length)}`;
    const rewritten = tag.slice(start.length).replace(ATTRIBUTE, (whole, attribute: string, equals: string, value) => {
      if (value === undefined || !attributes.includes(attribute.toLowerCase())) return whole;
      const quote = value.startsWith('"') || value.startsWith("'") ? value[0] : "";
      const url = quote === "" ? value : value.slice(1, -1);
      const blank = /^\s*/.exec(url)?.[0] ?? "";
      return `${attribute}${equals}${quote}${blank}${rewriteUrl(url.slice(blank.length), this.#context)}${quote}`;
    });
    return lowerStart + rewritten;
  }
}

/** `</textarea`, the longest text that ends a skipped part. */
const TERMINATOR_LENGTH_MAX = 10;

function search(
  pattern: RegExp,
  text: string,
  from: number,
): { readonly index: number; readonly text: string } | undefined {
  const global = new RegExp(pattern, "gi");
  global.lastIndex = from;
  const found = global.exec(text);
  return found === null ? undefined : { index: found.index, text: found[0] };
}

/** The index after the tag that starts at `start`; undefined when its end has not arrived. */
function tagEnd(text: string, start: number): number | undefined {
  let quote = "";
  for (let index = start + 1; index < text.length && index - start <= TAG_LENGTH_MAX; index++) {
    const char = text[index]!;
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === ">") return index + 1;
    else if ((char === '"' || char === "'") && /=\s*$/.test(text.slice(Math.max(start, index - 8), index)))
      quote = char;
  }
  return undefined;
}
