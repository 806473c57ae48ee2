// The flood on ns-3's lr-wpan: 802.15.4 PHY and MAC with unslotted CSMA/CA over a spectrum channel.
//
// flood_ns3_lrwpan <network file> <floods> <jitter from, s> <jitter to, s> <frame, bytes>
// prints "<receptions by the application> <seconds of process time, from making the nodes to the last reception>".
// The network's range makes the neighbors: within it no loss, beyond it nothing is heard. The MAC's header and check
// sum take 11 bytes, so a frame of 15 carries a number of four.
#include "ns3/core-module.h"
#include "ns3/lr-wpan-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/spectrum-module.h"

#include <ctime>
#include <fstream>
#include <iostream>
#include <limits>
#include <vector>

using namespace ns3;

static const uint32_t OVERHEAD_B = 11;

class Flooder : public Object
{
  public:
    static uint64_t receptions;
    Ptr<LrWpanNetDevice> device;
    Ptr<UniformRandomVariable> jitter;
    uint32_t payload_B;
    std::vector<bool> known;

    void Publish(uint32_t publication)
    {
        known[publication] = true;
        Simulator::Schedule(Seconds(jitter->GetValue()), &Flooder::Transmit, this, publication);
    }

    void Receive(McpsDataIndicationParams, Ptr<Packet> packet)
    {
        uint32_t publication;
        packet->CopyData(reinterpret_cast<uint8_t*>(&publication), sizeof publication);
        ++receptions;
        if (!known[publication])
        {
            Publish(publication);
        }
    }

  private:
    void Transmit(uint32_t publication)
    {
        std::vector<uint8_t> payload(payload_B);
        *reinterpret_cast<uint32_t*>(payload.data()) = publication;
        McpsDataRequestParams request;
        request.m_srcAddrMode = SHORT_ADDR;
        request.m_dstAddrMode = SHORT_ADDR;
        request.m_dstPanId = 0;
        request.m_dstAddr = Mac16Address("ff:ff");
        device->GetMac()->McpsDataRequest(request, Create<Packet>(payload.data(), payload_B));
    }
};

uint64_t Flooder::receptions = 0;

int main(int argc, char** argv)
{
    std::ifstream file(argv[1]);
    uint32_t floods = std::stoul(argv[2]);
    size_t count;
    double range_m;
    file >> count >> range_m;
    std::vector<Vector> places(count);
    for (auto& place : places)
    {
        file >> place.x >> place.y;
        file.ignore(std::numeric_limits<std::streamsize>::max(), '\n'); // the neighbors
    }
    std::clock_t start = std::clock();

    Ptr<SingleModelSpectrumChannel> channel = CreateObject<SingleModelSpectrumChannel>();
    Ptr<RangePropagationLossModel> loss = CreateObject<RangePropagationLossModel>();
    loss->SetAttribute("MaxRange", DoubleValue(range_m));
    channel->AddPropagationLossModel(loss);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    channel->SetAttribute("MaxLossDb", DoubleValue(200)); // does not bother those out of range with an event
    Ptr<UniformRandomVariable> jitter = CreateObject<UniformRandomVariable>();
    jitter->SetAttribute("Min", DoubleValue(std::stod(argv[3])));
    jitter->SetAttribute("Max", DoubleValue(std::stod(argv[4])));

    NodeContainer nodes;
    nodes.Create(count);
    std::vector<Ptr<Flooder>> flooders;
    for (size_t i = 0; i < count; ++i)
    {
        Ptr<ConstantPositionMobilityModel> place = CreateObject<ConstantPositionMobilityModel>();
        place->SetPosition(places[i]);
        nodes.Get(i)->AggregateObject(place);

        Ptr<Flooder> flooder = CreateObject<Flooder>();
        flooder->device = CreateObject<LrWpanNetDevice>();
        flooder->device->SetAddress(Mac16Address::Allocate());
        flooder->device->SetChannel(channel);
        flooder->device->GetMac()->SetPanId(0);
        nodes.Get(i)->AddDevice(flooder->device);
        flooder->device->GetMac()->SetMcpsDataIndicationCallback(MakeCallback(&Flooder::Receive, flooder));
        flooder->jitter = jitter;
        flooder->payload_B = std::stoul(argv[5]) - OVERHEAD_B;
        flooder->known.resize(floods);
        flooders.push_back(flooder);
    }
    for (uint32_t i = 0; i < floods; ++i)
    {
        Simulator::ScheduleWithContext(0, Seconds(i), &Flooder::Publish, flooders[0], i);
    }
    Simulator::Stop(Seconds(floods + 10));
    Simulator::Run();
    std::cout << Flooder::receptions << " " << double(std::clock() - start) / CLOCKS_PER_SEC << std::endl;
}
