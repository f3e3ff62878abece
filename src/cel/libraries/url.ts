/** `url('https://example.com:80/path?k=v')` and its parts. */

import { functionOf, type Library, method, overload } from "../functions.ts";
import { EntryMap } from "../values/entry-map.ts";
import { boolType, listType, mapType, opaqueType, stringType, type Type } from "../values/types.ts";
import { ArrayList, fail, Opaque, type Value } from "../values/value.ts";
import { checkRequestUri, escapedPath, type GoUrl, hostname, parseUrl, port, queryOf } from "./go-url.ts";

const urlType = opaqueType("kubernetes.URL");

class UrlValue extends Opaque {
  readonly type: Type = urlType;
  readonly url: GoUrl;

  constructor(url: GoUrl) {
    super();
    this.url = url;
  }

  override equals(other: Value): boolean {
    return other instanceof UrlValue && other.text() === this.text();
  }

  text(): string {
    const { scheme, user, host, query, fragment } = this.url;
    const authority = host === "" && user === "" ? "" : `//${user === "" ? "" : `${user}@`}${host}`;
    return `${scheme}:${authority}${escapedPath(this.url)}?${query}#${fragment}`;
  }
}

function toUrl(text: string): UrlValue {
  const error = checkRequestUri(text);
  return error === undefined
    ? new UrlValue(parseUrl(text))
    : fail(`URL parse error during conversion from string: ${error}`);
}

function partFunction(name: string, id: string, read: (url: GoUrl) => string): ReturnType<typeof functionOf> {
  return functionOf(
    name,
    method(id, [urlType], stringType, ({ url }: UrlValue) => read(url)),
  );
}

export const url: Library = {
  functions: [
    functionOf("url", overload("string_to_url", [stringType], urlType, toUrl)),
    functionOf(
      "isURL",
      overload("is_url_string", [stringType], boolType, (text: string) => checkRequestUri(text) === undefined),
    ),
    partFunction("getScheme", "url_get_scheme", ({ scheme }) => scheme),
    partFunction("getHost", "url_get_host", ({ host }) => host),
    partFunction("getHostname", "url_get_hostname", hostname),
    partFunction("getPort", "url_get_port", port),
    partFunction("getEscapedPath", "url_get_escaped_path", escapedPath),
    functionOf(
      "getQuery",
      method("url_get_query", [urlType], mapType(stringType, listType(stringType)), ({ url }: UrlValue) => {
        return EntryMap.of([...queryOf(url)].map(([key, values]) => [key, new ArrayList(values)]));
      }),
    ),
  ],
};
