/** Texts of errors of file operations as programs in Go print them: `open /x: no such file or directory`. */
import { getSystemErrorMessage } from "node:util";

/** The texts of the C library that libuv words differently. */
const texts: Readonly<Record<string, string>> = {
  EBUSY: "device or resource busy",
  EEXIST: "file exists",
  EIO: "input/output error",
  EISDIR: "is a directory",
  ELOOP: "too many levels of symbolic links",
  EMFILE: "too many open files",
  ENAMETOOLONG: "file name too long",
  ENOSPC: "no space left on device",
  ETXTBSY: "text file busy",
  EXDEV: "invalid cross-device link",
};

/** Undefined for another error. */
export function fileErrorText(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, errno, syscall, path } = error as NodeJS.ErrnoException;
  if (code === undefined || errno === undefined || syscall === undefined || path === undefined) return undefined;
  return `${syscall} ${path}: ${texts[code] ?? getSystemErrorMessage(errno)}`;
}
