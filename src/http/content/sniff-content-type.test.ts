import t from "tap";
import { sniffContentType } from "./sniff-content-type.ts";

t.test("sniffContentType() finds the type by the first bytes", async (t) => {
  const cases: readonly (readonly [text: string, type: string])[] = [
    ["ok\n", "text/plain; charset=utf-8"],
    ["caf\xe9", "text/plain; charset=utf-8"],
    ["  <html>", "text/html; charset=utf-8"],
    ["<!doctype HTML >", "text/html; charset=utf-8"],
    ["<br>", "text/html; charset=utf-8"],
    ["<bread>", "text/plain; charset=utf-8"],
    ["\n<?xml version='1.0'?>", "text/xml; charset=utf-8"],
    ['{"a":1}', "text/plain; charset=utf-8"],
    ["%PDF-1.7", "application/pdf"],
    ["\xef\xbb\xbfx", "text/plain; charset=utf-8"],
    ["\x89PNG\r\n\x1a\n\0", "image/png"],
    ["RIFF\0\0\0\0WEBPVP8", "image/webp"],
    ["\x1f\x8b\x08\0", "application/x-gzip"],
    ["PK\x03\x04", "application/zip"],
    ["\0asm\x01", "application/wasm"],
    ["a\0b", "application/octet-stream"],
    [`${"a".repeat(512)}\0`, "text/plain; charset=utf-8"],
  ];
  for (const [text, type] of cases) t.equal(sniffContentType(Buffer.from(text, "latin1")), type, JSON.stringify(text));
});
