import type { Filter, Headers, HttpResponse } from "./message.ts";

export declare function json(status: number, value: unknown, headers?: Headers): HttpResponse;
/** `text/plain; charset=utf-8` */
export declare function text(status: number, text: string, headers?: Headers): HttpResponse;
export declare function bytes(
  status: number,
  mediaType: string,
  body: HttpResponse["body"],
  headers?: Headers,
): HttpResponse;
/** A failure in the form every client of the API reads. */
export declare function statusJson(code: number, reason: string, message: string, headers?: Headers): HttpResponse;
/** Compresses bodies of at least `thresholdBytes` (128 KiB when absent) for clients that accept gzip. Streams are left alone. */
export declare function compression(thresholdBytes?: number): Filter;
