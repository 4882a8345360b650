package conform

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// What cases need of a device: what they post, besides the sends that every connection starts with. The coverage check
// derives from it which declared capabilities were proven.
var (
	needFetchAdd      = rdma.Need{Ops: rdma.Ops(rdma.OpFetchAdd)}
	needCmpSwap       = rdma.Need{Ops: rdma.Ops(rdma.OpCmpSwap)}
	needFence         = rdma.Need{Ops: rdma.Ops(rdma.OpRead, rdma.OpWrite, rdma.OpSend), Features: rdma.FeatFence}
	needFenceAdd      = rdma.Need{Ops: rdma.Ops(rdma.OpFetchAdd, rdma.OpWrite, rdma.OpSend), Features: rdma.FeatFence}
	needEvents        = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatEvents}
	needEventsRead    = rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpRead), Features: rdma.FeatEvents}
	needSolicited     = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatEvents | rdma.FeatSolicited}
	needAsync         = rdma.Need{Features: rdma.FeatAsyncEvents}
	needAsyncWrite    = rdma.Need{Ops: rdma.Ops(rdma.OpWrite), Features: rdma.FeatAsyncEvents}
	needInline        = rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite), Features: rdma.FeatInline, Inline: 1}
	needInlineSGE     = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatInline, Inline: 2, SGE: 2}
	needInlineRd      = rdma.Need{Ops: rdma.Ops(rdma.OpRead), Features: rdma.FeatInline, Inline: 8}
	needSendImm       = rdma.Need{Ops: rdma.Ops(rdma.OpSendImm)}
	needImmPayload    = rdma.Need{Ops: rdma.Ops(rdma.OpSendImm), Features: rdma.FeatImmPayload}
	needWriteImm      = rdma.Need{Ops: rdma.Ops(rdma.OpWriteImm)}
	needSendInv       = rdma.Need{Ops: rdma.Ops(rdma.OpSendInv, rdma.OpWrite)}
	needLocalInv      = rdma.Need{Ops: rdma.Ops(rdma.OpLocalInv, rdma.OpWrite)}
	needSend          = rdma.Need{Ops: rdma.Ops(rdma.OpSend)}
	needWrite         = rdma.Need{Ops: rdma.Ops(rdma.OpWrite)}
	needRead          = rdma.Need{Ops: rdma.Ops(rdma.OpRead)}
	needSendWrite     = rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite)}
	needSendWriteRead = rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead)}
	needWriteRead     = rdma.Need{Ops: rdma.Ops(rdma.OpWrite, rdma.OpRead)}
	needSendTwoSGE    = rdma.Need{Ops: rdma.Ops(rdma.OpSend), SGE: 2}
	needSRQ           = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatSRQ}
	needSRQEvent      = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatSRQ | rdma.FeatAsyncEvents}
	needKept          = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatKeepsKeys}
	needRNR           = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatRNRRetry}
)
