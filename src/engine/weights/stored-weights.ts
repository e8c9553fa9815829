/** Which sampling graphs hold their weights; the others take them as inputs. */

/**
 * Models up to this size, in bytes, are compiled with their weights inside whenever the weights
 * change: products with stored weights are up to twice as fast, and training samples a lot between
 * updates.
 */
export const MAX_STORED_BYTES = 2 ** 28;
/**
 * Larger ones, up to this size, have them inside the decode graph only: to rearrange a weight for a
 * product takes about as long as the product of a few rows, and a copy in every graph would be too
 * much memory. A graph must stay below 2 GiB.
 */
export const MAX_STORED_DECODE_BYTES = 2 ** 30;
