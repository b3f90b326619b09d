// Package doc holds values and documents as bytes, the types and schemas that give them meaning, and JSON on both sides.
//
// A value is encoded once, when it is written, and is never decoded into Go values again: filters read it in place,
// indexes order and hash it, and responses are written from it directly as JSON text. So the bytes in the file, the
// bytes in memory and the bytes an index compares are the same.
//
// An encoded value ([Raw]) begins with a tag and contains its own length:
//
//	null, false, true   tag
//	int, timestamp      tag, 8 bytes little-endian two's complement (a timestamp counts milliseconds since 1970 UTC)
//	float               tag, 8 bytes little-endian IEEE 754
//	decimal             tag, length (uvarint), the number as canonical JSON text
//	text, bytes         tag, length (uvarint), content
//	vector              tag of its width, length in bytes (uvarint), its numbers little-endian, as f32 or as f16
//	sparse vector       tag, length in bytes (uvarint), dimensions, then index and f32 weight of each, by ascending index
//	list                tag, length in bytes (4 bytes little-endian), the elements
//	object              tag, length in bytes (4 bytes little-endian), then key length (uvarint), key, value, by ascending key
//
// A document ([Document]) is its own length, its id, a table of offsets by slot, and the values. A slot is a field's
// fixed place: a schema never reuses one, so older documents stay readable after fields were added and dropped.
//
// Nothing here starts a goroutine or takes a lock, and nothing keeps its arguments unless it says so. Reading is safe
// for concurrent use; a [Builder] is not.
package doc
