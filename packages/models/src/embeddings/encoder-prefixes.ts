/** What encoders were trained to read before each kind of text. */

/** The words before a question and before what answers it. */
export interface EncoderPrefixes {
  readonly query: string;
  readonly passage: string;
}

/** The prefixes that encoders are known to need, by name. */
export const encoderPrefixes = {
  none: { query: "", passage: "" },
  /** E5 (Wang et al. 2022, arXiv 2212.03533). */
  e5: { query: "query: ", passage: "passage: " },
} as const satisfies Readonly<Record<string, EncoderPrefixes>>;
