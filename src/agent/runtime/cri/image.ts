import { bigInt64, bigUint64, boolean, list, map, message, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { imageSpec } from "./image-spec.ts";
import { podSandboxConfig } from "./sandbox.ts";
import { int64Value, uInt64Value } from "./shared.ts";

export const filesystemIdentifier = message("runtime.v1.FilesystemIdentifier", {
  mountpoint: optional(1, string),
});
export type FilesystemIdentifier = Infer<typeof filesystemIdentifier>;

export const filesystemUsage = message("runtime.v1.FilesystemUsage", {
  timestamp: optional(1, bigInt64),
  fsId: optional(2, filesystemIdentifier),
  usedBytes: optional(3, uInt64Value),
  inodesUsed: optional(4, uInt64Value),
});
export type FilesystemUsage = Infer<typeof filesystemUsage>;

export const windowsFilesystemUsage = message("runtime.v1.WindowsFilesystemUsage", {
  timestamp: optional(1, bigInt64),
  fsId: optional(2, filesystemIdentifier),
  usedBytes: optional(3, uInt64Value),
});
export type WindowsFilesystemUsage = Infer<typeof windowsFilesystemUsage>;

export const imageFilter = message("runtime.v1.ImageFilter", {
  image: optional(1, imageSpec),
});
export type ImageFilter = Infer<typeof imageFilter>;

export const listImagesRequest = message("runtime.v1.ListImagesRequest", {
  filter: optional(1, imageFilter),
});
export type ListImagesRequest = Infer<typeof listImagesRequest>;

export const image = message("runtime.v1.Image", {
  id: optional(1, string),
  repoTags: optional(2, list(string)),
  repoDigests: optional(3, list(string)),
  size: optional(4, bigUint64),
  uid: optional(5, int64Value),
  username: optional(6, string),
  spec: optional(7, imageSpec),
  pinned: optional(8, boolean),
});
export type Image = Infer<typeof image>;

export const listImagesResponse = message("runtime.v1.ListImagesResponse", {
  images: optional(1, list(image)),
});
export type ListImagesResponse = Infer<typeof listImagesResponse>;

export const imageStatusRequest = message("runtime.v1.ImageStatusRequest", {
  image: optional(1, imageSpec),
  verbose: optional(2, boolean),
});
export type ImageStatusRequest = Infer<typeof imageStatusRequest>;

export const imageStatusResponse = message("runtime.v1.ImageStatusResponse", {
  image: optional(1, image),
  info: optional(2, map(string)),
});
export type ImageStatusResponse = Infer<typeof imageStatusResponse>;

export const authConfig = message("runtime.v1.AuthConfig", {
  username: optional(1, string),
  password: optional(2, string),
  auth: optional(3, string),
  serverAddress: optional(4, string),
  identityToken: optional(5, string),
  registryToken: optional(6, string),
});
export type AuthConfig = Infer<typeof authConfig>;

export const pullImageRequest = message("runtime.v1.PullImageRequest", {
  image: optional(1, imageSpec),
  auth: optional(2, authConfig),
  sandboxConfig: optional(3, podSandboxConfig),
});
export type PullImageRequest = Infer<typeof pullImageRequest>;

export const pullImageResponse = message("runtime.v1.PullImageResponse", {
  imageRef: optional(1, string),
});
export type PullImageResponse = Infer<typeof pullImageResponse>;

export const removeImageRequest = message("runtime.v1.RemoveImageRequest", {
  image: optional(1, imageSpec),
});
export type RemoveImageRequest = Infer<typeof removeImageRequest>;

export const removeImageResponse = message("runtime.v1.RemoveImageResponse", {});
export type RemoveImageResponse = Infer<typeof removeImageResponse>;

export const imageFsInfoRequest = message("runtime.v1.ImageFsInfoRequest", {});
export type ImageFsInfoRequest = Infer<typeof imageFsInfoRequest>;

export const imageFsInfoResponse = message("runtime.v1.ImageFsInfoResponse", {
  imageFilesystems: optional(1, list(filesystemUsage)),
  containerFilesystems: optional(2, list(filesystemUsage)),
});
export type ImageFsInfoResponse = Infer<typeof imageFsInfoResponse>;
