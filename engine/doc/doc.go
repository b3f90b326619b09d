// Package doc holds values and documents as bytes, the types and schemas that give them meaning, and JSON on both sides.
//
// A value is encoded once, when it is written, and is never decoded into Go values again: filters look at it in place,
// indexes order and hash it, and answers are appended from it straight as JSON text. So the bytes in the file, the bytes
// in memory and the bytes an index compares are the same bytes.
//
// An encoded value ([Raw]) begins with a tag and says itself how long it is:
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
// A document ([Document]) is its own length, its id, a table of offsets by slot, and the values. A slot is a field's fixed
// place: a schema hands each out once, so an older document stays readable after fields came and went.
//
// Nothing here starts a goroutine or takes a lock, and nothing keeps what it is given. Reading is safe from many
// goroutines; a [Builder] belongs to one.
package doc
