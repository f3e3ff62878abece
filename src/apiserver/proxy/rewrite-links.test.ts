import { Readable } from "node:stream";
import { deflateSync, gunzipSync, gzipSync, inflateSync } from "node:zlib";
import fc from "fast-check";
import t from "tap";
import type { HttpResponse } from "../../http/message.ts";
import { readResponse } from "../../testing/apiserver/server-fixture.ts";
import { rewriteLinks, rewriteUrl } from "./rewrite-links.ts";

const prefix = "/api/v1/namespaces/a/services/b/proxy";
const context = { prefix, hosts: ["10.0.0.1:80", "kube.example.com"] };

const urls: Readonly<Record<string, string>> = {
  "/": `${prefix}/`,
  "/a/b?c=d#e": `${prefix}/a/b?c=d#e`,
  "http://10.0.0.1:80/a": `${prefix}/a`,
  "https://kube.example.com/a": `${prefix}/a`,
  "//kube.example.com/a": `${prefix}/a`,
  [`${prefix}/a`]: `${prefix}/a`,
  "https://other.example.com/a": "https://other.example.com/a",
  "http://10.0.0.1:80": "http://10.0.0.1:80",
  "a/b": "a/b",
  "../a": "../a",
  "?q": "?q",
  "#top": "#top",
  "mailto:a@example.com": "mailto:a@example.com",
  "": "",
};

t.test("rewriteUrl() leads absolute paths of the same host through the proxy", async (t) => {
  for (const [url, wanted] of Object.entries(urls)) t.equal(rewriteUrl(url, context), wanted, url);
});

/** Pages and what the proxy makes of them. */
const pages: readonly (readonly [string, string])[] = [
  ['<a href="/x">', `<a href="${prefix}/x">`],
  ["<A class=c HREF = '/x' id=1>/x</A>", `<a class=c HREF = '${prefix}/x' id=1>/x</A>`],
  ["<img src=/x.png><img srcset=/x.png>", `<img src=${prefix}/x.png><img srcset=/x.png>`],
  ['<form action="/x?a=1&amp;b=2" method="/get">', `<form action="${prefix}/x?a=1&amp;b=2" method="/get">`],
  ['<video poster="/p" src="/v"/>', `<video poster="${prefix}/p" src="${prefix}/v"/>`],
  ['<p href="/x"><b title=">" src="/x">', '<p href="/x"><b title=">" src="/x">'],
  ['<!-- <a href="/x"> --><a href="/y">', `<!-- <a href="/x"> --><a href="${prefix}/y">`],
  ['<script src="/s">s = \'<a href="/x">\'</script>', `<script src="${prefix}/s">s = '<a href="/x">'</script>`],
  ["<style>a < b</style><link href=/y>", `<style>a < b</style><link href=${prefix}/y>`],
  ['1 < 2 <a title="a>b" href="/x">', `1 < 2 <a title="a>b" href="${prefix}/x">`],
  ["<a href='https://other.example.com/x'>", "<a href='https://other.example.com/x'>"],
  ['<a href="/unfinished', '<a href="/unfinished'],
  ["caf\u00e9 <a href=/x>", `caf\u00e9 <a href=${prefix}/x>`],
];

function pageResponse(chunks: readonly Uint8Array[], headers: HttpResponse["headers"] = {}): HttpResponse {
  return {
    status: 200,
    headers: { "content-type": "text/html; charset=utf-8", ...headers },
    body: Readable.from(chunks),
  };
}

t.test("rewriteLinks() rewrites the links of a page, wherever its chunks end", async (t) => {
  const whole = Buffer.from(
    pages
      .map(([page]) => page)
      .join("\n")
      .replace('<a href="/unfinished\n', ""),
  );
  const wanted = pages
    .map(([, page]) => page)
    .join("\n")
    .replace('<a href="/unfinished\n', "");
  for (const [page, result] of pages) {
    const { text } = await readResponse(rewriteLinks(pageResponse([Buffer.from(page)]), context));
    t.equal(text, result);
  }
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(whole.length), { maxLength: 20 }), async (cuts) => {
      const ends = [...cuts, whole.length].sort((a, b) => a - b);
      const chunks = ends
        .map((end, index) => whole.subarray(ends[index - 1] ?? 0, end))
        .filter((one) => one.length > 0);
      const { text } = await readResponse(rewriteLinks(pageResponse(chunks), context));
      return text === wanted;
    }),
    { numRuns: 200 },
  );
});

t.test("rewriteLinks() keeps all bytes of any page without links, but for the case of names", async () => {
  const withoutCase = (bytes: Buffer): string => bytes.toString("latin1").toLowerCase();
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 5 }), async (chunks) => {
      const response = rewriteLinks(pageResponse(chunks.filter((one) => one.length > 0)), context);
      return withoutCase((await readResponse(response)).bytes) === withoutCase(Buffer.concat(chunks));
    }),
    { examples: [[[Buffer.from("<A"), Buffer.from(">")]]] },
  );
});

t.test("rewriteLinks() rewrites compressed pages, and leaves other content and encodings", async (t) => {
  const page = Buffer.from('<a href="/x">');
  const wanted = `<a href="${prefix}/x">`;
  for (const [encoding, encode, decode] of [
    ["gzip", gzipSync, gunzipSync],
    ["deflate", deflateSync, inflateSync],
  ] as const) {
    const headers = { "content-encoding": encoding, "content-length": "99" };
    const { bytes, headers: sent } = await readResponse(rewriteLinks(pageResponse([encode(page)], headers), context));
    t.equal(decode(bytes).toString(), wanted, encoding);
    t.same([sent["content-encoding"], sent["content-length"]], [encoding, undefined]);
  }
  const untouched = [{ "content-encoding": "br" }, { "content-type": "text/plain" }, { "content-type": "text/htmlx" }];
  for (const headers of untouched) {
    t.equal((await readResponse(rewriteLinks(pageResponse([page], headers), context))).text, page.toString());
  }
  const moved = rewriteLinks(pageResponse([page], { location: "/login" }), context);
  t.equal(moved.headers.location, `${prefix}/login`);
});

t.test("rewriteLinks() takes linear time for any tag", async (t) => {
  for (const unit of [
    "<a ",
    "<a href='",
    "<",
    "<!--",
    "<script",
    "<a b=",
    "</",
    '<a ="',
    "<a href=/x>",
    `<a ${"b".repeat(5000)}>`,
    `<a b${" ".repeat(5000)}>`,
  ]) {
    const page = Buffer.from(unit.repeat(1_000_000 / unit.length));
    const chunks = Array.from({ length: 16 }, (_, index) => page.subarray(index * 62_500, (index + 1) * 62_500));
    const started = performance.now();
    await readResponse(rewriteLinks(pageResponse(chunks), context));
    t.ok(performance.now() - started < 5000, `${unit.slice(0, 12)}: ${Math.round(performance.now() - started)} ms`);
  }
});
