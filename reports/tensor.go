package reports

// tensorWays is what each kind of call of the workload tensor carries.
var tensorWays = map[string]string{
	"push":     "a tensor to the server, answered by a note",
	"pull":     "a tensor to the client, asked for by a note",
	"exchange": "a tensor each way, bandwidth of both directions",
}
